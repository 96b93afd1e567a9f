"""A loop of a kernel carries a variable only if Triton sees its value change.

Triton compares the value that a name has before the loop with the one that it has at the end of the body, by
identity. Where a name stands for another variable's value both before the loop and in it (``last = scale`` twice),
it sees no change, and the name keeps its first value for ever. The interpreter runs plain Python and does not show it.
"""

import ast
from pathlib import Path

import pytest

import engine.fast.kernels

FILES = sorted(Path(engine.fast.kernels.__file__).parent.glob("*.py"))


def names_lost(source: str) -> list[str]:
    """Return the names that are set to the same other name before a loop and in it, in functions of Triton."""
    lost = []
    for function in ast.walk(ast.parse(source)):
        if not (isinstance(function, ast.FunctionDef) and "jit" in _decorators(function)):
            continue
        for loop in ast.walk(function):
            if isinstance(loop, ast.For | ast.While):
                inside = set(_copies(loop))
                before = {copy for copy, line in _copies(function).items() if line < loop.lineno}
                lost += [name for name, other in inside & before]
    return lost


def _decorators(function: ast.FunctionDef) -> str:
    return " ".join(ast.unparse(one) for one in function.decorator_list)


def _copies(node: ast.AST) -> dict[tuple[str, str], int]:
    """(name, other name) of each assignment of one plain name to another, with its first line."""
    found: dict[tuple[str, str], int] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name):
            for target in one.targets:
                if isinstance(target, ast.Name):
                    found.setdefault((target.id, one.value.id), one.lineno)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_name_is_lost_in_a_loop(file):
    assert not names_lost(file.read_text("utf-8"))


def test_a_planted_loss_is_seen():
    source = """
@triton.jit
def kernel(x):
    scale = tl.load(x)
    last = scale
    for turn in range(3):
        tl.store(x, last)
        last = scale
        scale = scale * 2
"""
    assert names_lost(source) == ["last"]
    assert not names_lost(source.replace("last = scale\n    for", "last = scale * 0\n    for"))
