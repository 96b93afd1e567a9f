"""The command line: flags, the terminal, and the longer commands."""
