"""Proofs: the law of a method's text, enumerated branch by branch on a vocabulary of a few tokens."""
