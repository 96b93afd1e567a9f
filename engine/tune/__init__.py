"""Which drafter, how many tokens, from how many texts on it does not pay: measured on one's own prompts (``tuning``)."""
