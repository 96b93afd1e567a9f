"""The command line: flags, the terminal, and commands that are more than a call."""
