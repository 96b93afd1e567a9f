"""Conversations, and constraints on what is written: JSON schemas and grammars."""
