"""Conversations, prompts, and constraints on texts: JSON schemas, grammars, Python names."""
