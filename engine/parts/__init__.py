"""Trained things attached to a target: draft models, heads, denoisers; one kind per file."""
