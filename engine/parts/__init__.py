"""Checkpoints of targets and of trained parts: finding them, checking them, and opening each once per process."""
