"""Every causal architecture that the installed transformers knows, tiny and random, against generate."""
