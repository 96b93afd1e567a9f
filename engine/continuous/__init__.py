"""Speculative decoding where a token is a point of a plane: acceptance on densities, with models that can be drawn."""
