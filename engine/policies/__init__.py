"""How much to draft, when to stop, which masks to fill next."""
