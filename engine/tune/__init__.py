"""Measures on a user's own prompts which drafter is fastest, how many tokens it should draft per step, and from how
many texts at a time on speculative decoding is no longer faster than plain decoding (``tuning``)."""
