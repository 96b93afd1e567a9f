"""The same weights with little overhead on a CPU."""
