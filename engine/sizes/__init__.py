"""How many tokens to draft: measured on this machine, stored, and settled before a run."""
