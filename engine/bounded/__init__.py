"""Code and files of strangers' checkpoints, tokenizers for instance, in separate processes or with a time limit."""
