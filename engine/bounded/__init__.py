"""Code of strangers' checkpoints, tokenizers for one, in a process of its own with bounds on time and memory."""
