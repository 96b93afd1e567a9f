"""Reads any causal language model as rows of a tree, with sessions, KV caches and masks."""
