"""The structure of Python, statement by statement: the rules of the grammar by which each is built.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025). The paper reduces code to such rules with a pushdown
automaton; here the standard library parses the whole lines so far. Names are alike, and so are all numbers and all strings; blank lines,
comments, brackets that change nothing, and where a statement's lines break make no difference.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from engine.methods.rpg.line_structure import SEEN, Structure
from engine.python_text import parsed

BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
GOES_ON = ("elif", "else", "except", "finally", ")", "]", "}")
"""A line that begins so belongs to the one before."""


def statements(lines: Sequence[str]) -> list[Structure] | None:
    """The statements in the last lines, each with the index of its first line; None if the lines are not Python."""
    begun = max(0, len(lines) - SEEN)
    begins = (
        place
        for place in range(begun, len(lines))
        if lines[place][:1].strip() and not lines[place].startswith(GOES_ON)
    )
    start = next(begins, 0) if begun else 0
    found = _statements("\n".join(lines[start:]))
    return None if found is None else [(rules, line + start) for rules, line in found]


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[Structure, ...] | None:
    """The structures of a text whose last line is whole. A statement whose block is still empty is one as well."""
    count, told = text.count("\n") + 1, text.rstrip()
    last = told.rpartition("\n")[2]
    open_block = " " * (len(last) - len(last.lstrip()) + 1) + "pass"
    tree = parsed(f"{text}\n{open_block}" if told.endswith(":") else text)
    if tree is None:
        return None
    found = ((rules, line - 1) for rules, line in _of_block(tree.body, ""))
    return tuple(structure for structure in found if structure[1] < count)


def _of_block(block: Sequence[ast.AST], role: str) -> Iterator[Structure]:
    """role: of the block, if it is no body; elif for a chained if."""
    for statement in block:
        begin = statement.pattern if isinstance(statement, ast.match_case) else statement
        first = min(node.lineno for node in (*getattr(statement, "decorator_list", ()), begin))
        yield (role, str(begin.col_offset), *_rules(statement, BLOCKS)), first
        for name in BLOCKS:
            inner = getattr(statement, name, ())
            role_of = "" if name == "body" else "elif" if _chained(statement, name, inner) else name
            yield from _of_block(inner, role_of)


def _chained(above: ast.AST, name: str, inner: Sequence[ast.AST]) -> bool:
    ifs = all(isinstance(one, ast.If) for one in (above, *inner))
    return ifs and name == "orelse" and bool(inner) and inner[0].col_offset == above.col_offset


def _rules(node: ast.AST, without: Sequence[str] = ()) -> Iterator[str]:
    """The rules of a node and of all nodes in it, from above. without: fields that are not looked at."""
    yield type(node).__name__
    if isinstance(node, ast.Constant):
        yield (
            "number" if isinstance(node.value, int | float | complex) else type(node.value).__name__
        )
    for name, value in ast.iter_fields(node):
        if name in without or name == "ctx":
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                yield name
                yield from _rules(one)
