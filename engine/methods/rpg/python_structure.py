"""The structure of Python, statement by statement: the rules of the grammar that build each statement.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025). The paper reduces code to such rules with
a pushdown automaton; here the standard library parses the finished lines. All names are alike, and so are all numbers
and all strings. Blank lines, comments, brackets that change nothing, and line breaks inside a statement make no
difference.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from engine.methods.rpg.line_structure import SEEN, Structure
from engine.python_text import parsed

BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
GOES_ON = ("elif", "else", "except", "finally", ")", "]", "}")
"""A line that begins with one of these strings belongs to the statement before it."""


def statements(lines: Sequence[str]) -> list[Structure] | None:
    """Return the statements in the last lines, each with the index of its first line; None if the lines are not
    Python."""
    begun = max(0, len(lines) - SEEN)
    begins = (
        place
        for place in range(begun, len(lines))
        if lines[place][:1].strip() and not lines[place].startswith(GOES_ON)
    )
    start = next(begins, 0) if begun else 0
    parts = _statements("\n".join(lines[start:]))
    return None if parts is None else [(rules, line + start) for rules, line in parts]


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[Structure, ...] | None:
    """Return the structures of the statements in a text whose last line is finished; None if the text is not Python. A
    statement such as ``if x:`` is included even if its block is still empty."""
    count, stripped = text.count("\n") + 1, text.rstrip()
    last = stripped.rpartition("\n")[2]
    open_block = " " * (len(last) - len(last.lstrip()) + 1) + "pass"
    tree = parsed(f"{text}\n{open_block}" if stripped.endswith(":") else text)
    if tree is None:
        return None
    numbered = ((rules, line - 1) for rules, line in _of_block(tree.body, ""))
    return tuple(structure for structure in numbered if structure[1] < count)


def _of_block(block: Sequence[ast.AST], role: str) -> Iterator[Structure]:
    """Yield the structures of the statements of a block, and of all blocks nested in it. role: the role of the block in
    the statement above it: "" for a body, "elif" for a chained if, otherwise the name of the block's field in
    ``ast``."""
    for statement in block:
        begin = statement.pattern if isinstance(statement, ast.match_case) else statement
        first = min(node.lineno for node in (*getattr(statement, "decorator_list", ()), begin))
        yield (role, str(begin.col_offset), *_rules(statement, BLOCKS)), first
        for name in BLOCKS:
            inner = getattr(statement, name, ())
            role_of = "" if name == "body" else "elif" if _chained(statement, name, inner) else name
            yield from _of_block(inner, role_of)


def _chained(above: ast.AST, name: str, inner: Sequence[ast.AST]) -> bool:
    ifs = all(isinstance(statement, ast.If) for statement in (above, *inner))
    return ifs and name == "orelse" and bool(inner) and inner[0].col_offset == above.col_offset


def _rules(node: ast.AST, without: Sequence[str] = ()) -> Iterator[str]:
    """Yield the grammar rules of a syntax node and of all its descendants, from the top down. without: the names of the
    fields of ``node`` that are left out."""
    yield type(node).__name__
    if isinstance(node, ast.Constant):
        yield (
            "number" if isinstance(node.value, int | float | complex) else type(node.value).__name__
        )
    for name, value in ast.iter_fields(node):
        if name in without or name == "ctx":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name
                yield from _rules(child)
