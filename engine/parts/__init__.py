"""Checkpoints, of targets and of what is trained for them: found, checked, opened once a process."""
