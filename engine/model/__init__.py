"""Any causal language model, read as rows of a tree: sessions, caches, masks."""
