"""Text that may be Python, parsed by the standard library."""

import ast
import warnings


def parsed(text: str) -> ast.Module | None:
    """None for text that is not Python."""
    try:
        with warnings.catch_warnings():  # of Python's own about what it reads
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
