"""Speculative decoding where a token is a point of the plane: acceptance on densities, with models that can be
plotted."""
