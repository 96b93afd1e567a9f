"""docs/exercise.md as a student does it."""

import re
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.methods import own_drafters
from engine.methods.guarded import outside_drafter
from engine.proof import proving
from engine.proof.proving import prove
from engine.rules import verifiers
from tools import new_method

PAGE = Path(__file__).parents[1] / "docs" / "exercise.md"
TEXT = PAGE.read_text("utf-8")
DRAFTER = re.search(
    r"<!-- file: bigram_draws/drafter.py -->\n```python\n(.*?)```", TEXT, re.DOTALL
)[1]
MISTAKES = re.findall(
    r'<!-- mistake: (after|instead of) "(.*?)" -->\n```python\n(.*?)```', TEXT, re.DOTALL
)


@pytest.fixture
def folder(tmp_path):
    return new_method.write("bigram_draws", tmp_path)


def test_the_new_folder_is_exact(folder, capsys, monkeypatch):
    monkeypatch.setattr(proving, "SIZES", proving.SIZES[:1])  # the cases with the fewest branches
    assert main(["prove", str(folder), "--rule", "rejection", "--seconds", "300"]) == 0
    assert "bigram_draws: exact with these rules" in capsys.readouterr().out


def rejected(folder):
    """Return the result of a proof of the folder's drafter with the rule ``rejection``."""
    (found,) = prove(
        outside_drafter(folder, own_drafters()), [verifiers()["rejection"]], seconds=600, most=16
    ).rules
    return found


def test_the_page_s_drafter_is_exact(folder):
    (folder / "drafter.py").write_text(DRAFTER, "utf-8")
    found = rejected(folder)
    assert found.counterexample is None and found.cases >= 12


@pytest.mark.parametrize("number", range(3))
def test_each_mistake_is_found(number, folder):
    where, line, change = MISTAKES[number]
    old = next(one for one in DRAFTER.splitlines(keepends=True) if line in one)
    wrong = DRAFTER.replace(old, old + change if where == "after" else change)
    (folder / "drafter.py").write_text(wrong, "utf-8")
    found = rejected(folder).counterexample
    assert max(abs(a - b) for a, b in zip(found.expected, found.got, strict=True)) > 1e-3
