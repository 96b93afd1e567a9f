"""Decoding several texts with shared passes of the target."""
