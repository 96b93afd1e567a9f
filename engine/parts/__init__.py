"""Checkpoints of targets and of their trained parts: search, checks, and opening once per process."""
