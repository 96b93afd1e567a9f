"""Runs any causal language model over the rows of a draft tree, with sessions, KV caches and masks."""
