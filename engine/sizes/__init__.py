"""How many tokens to draft: measured on this machine, remembered, settled before a run."""
