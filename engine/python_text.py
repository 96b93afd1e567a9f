"""Parsing of text that may be Python, by the standard library."""

import ast
import warnings


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of the text; None if it is not Python."""
    try:
        with warnings.catch_warnings():  # Python warns about some of the code that it parses
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
