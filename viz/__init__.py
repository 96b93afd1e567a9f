"""Draws pictures of traces. Of the engine it imports only ``engine.trace`` and ``engine.errors``."""
