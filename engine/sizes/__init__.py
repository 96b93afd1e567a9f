"""Chooses how many tokens to draft: measures step costs on this machine, stores them, and sets the size before a
run."""
