"""docs/exercise.md as a student does it."""

import re
from pathlib import Path

import pytest

from engine.__main__ import main
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


def proven(folder, capsys) -> tuple[int, str]:
    code = main(["prove", str(folder), "--seconds", "5"])
    return code, capsys.readouterr().out


def test_the_new_folder_is_exact(folder, capsys):
    assert proven(folder, capsys)[0] == 0


def test_the_page_s_drafter_is_exact(folder, capsys):
    (folder / "drafter.py").write_text(DRAFTER, "utf-8")
    code, told = proven(folder, capsys)
    assert code == 0 and "bigram_draws: exact with these rules" in told


@pytest.mark.parametrize("number", range(3))
def test_each_mistake_is_found(number, folder, capsys):
    where, line, change = MISTAKES[number]
    found = next(one for one in DRAFTER.splitlines(keepends=True) if line in one)
    wrong = DRAFTER.replace(found, found + change if where == "after" else change)
    (folder / "drafter.py").write_text(wrong, "utf-8")
    code, told = proven(folder, capsys)
    assert code == 1 and "biased with rejection" in told
    rows = dict(re.findall(r"^  (expected|got) +([\d. ]+)$", told, re.MULTILINE))
    expected, got = (list(map(float, rows[one].split())) for one in ("expected", "got"))
    assert sum(expected) == pytest.approx(1, abs=1e-3) and sum(got) == pytest.approx(1, abs=1e-3)
    assert max(abs(a - b) for a, b in zip(expected, got, strict=True)) > 1e-3
