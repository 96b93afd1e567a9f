"""Proofs: the law of a method's text, computed by enumerating all random choices on a vocabulary of a few tokens."""
