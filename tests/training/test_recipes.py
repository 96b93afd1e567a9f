"""A user's mistake ends with one line on standard error and exit code 2."""

from __future__ import annotations

import pytest

from engine.training.__main__ import main
from engine.training.recipes import RECIPES
from tests.training.conftest import flags


def one_line(capsys) -> str:
    out = capsys.readouterr()
    assert out.out == "" and out.err.startswith("error: ") and out.err.count("\n") == 1
    return out.err


def test_unknown_recipe(capsys):
    assert main(["soufflé"]) == 2
    error = one_line(capsys)
    assert "soufflé" in error and all(name in error for name in RECIPES)


@pytest.mark.parametrize(
    "recipe",
    [
        "tokenizer",
        "windows",
        "target",
        "text",
        "draft",
        "divergences",
        "align",
        "gains",
        "evaluate",
        "conversations",
        "hybrid",
        "experts",
    ],
)
def test_missing_corpora(recipe, tmp_path, capsys):
    assert main([recipe, *flags(tmp_path, tmp_path)]) == 2
    assert "no corpora" in one_line(capsys)
