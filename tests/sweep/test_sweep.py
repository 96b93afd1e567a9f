"""A small form of the sweep: one architecture of each kind, and those that once wrote wrong texts."""

import json

import pytest

from tests.sweep.__main__ import main
from tests.sweep.comparing import DRAFTERS, EQUAL, REFUSED, UNBUILDABLE, WRONG, Outcome, outcomes
from tests.sweep.table import table
from tests.sweep.tiny_configs import config_of

EXPECTED = {
    "bloom": (EQUAL, EQUAL, EQUAL),
    "mpt": (EQUAL, EQUAL, EQUAL),
    "codegen": (EQUAL, EQUAL, EQUAL),
    "big_bird, is_decoder": (EQUAL, EQUAL, EQUAL),
    "bart": (EQUAL, EQUAL, EQUAL),
    "blenderbot": (EQUAL, EQUAL, EQUAL),
    "bigbird_pegasus": (EQUAL, EQUAL, EQUAL),
    "phi3, longrope": (EQUAL, EQUAL, EQUAL),
    "llama, dynamic": (EQUAL, EQUAL, EQUAL),
    "gemma3_text": (EQUAL, EQUAL, EQUAL),
    "deepseek_v3": (EQUAL, EQUAL, EQUAL),
    "falcon, alibi": (EQUAL, EQUAL, REFUSED),
    "gpt_neo": (EQUAL, EQUAL, REFUSED),
    "big_bird": (REFUSED,),
    "cpmant": (REFUSED,),
    "doge": (REFUSED,),
    "mamba": (REFUSED,),
    "xlnet": (REFUSED,),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_equal_or_refused(name):
    found = outcomes(name, lambda: config_of(name))
    assert tuple(one.kind for one in found) == EXPECTED[name], found
    for one in found:
        if one.kind == REFUSED:
            assert one.words.startswith(name)
            assert one.words.endswith(".")


def test_a_configuration_that_cannot_be_built_is_said_to_be_so():
    def broken():
        raise ValueError("no such layers")

    found = outcomes("broken", broken)
    assert found == [Outcome(None, UNBUILDABLE, "ValueError: no such layers")]


def test_a_wrong_text_fails_the_sweep(monkeypatch, tmp_path, capsys):
    """The command runs, remembers, and says what is wrong."""
    monkeypatch.setattr("tests.sweep.comparing._generated", lambda module: [0])
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))  # restored after the test
    results, written = tmp_path / "results.jsonl", tmp_path / "table.md"
    arguments = ["gpt2", "--results", str(results), "--table", str(written)]
    assert main(arguments) == 1
    assert "1 wrong" in capsys.readouterr().out
    kinds = [one["kind"] for one in json.loads(results.read_text())["outcomes"]]
    assert kinds == [WRONG] * len(DRAFTERS)
    assert "1 wrong or ended in a traceback" in written.read_text()
    monkeypatch.setattr("tests.sweep.__main__.outcomes", None)  # nothing is run again
    assert main(arguments) == 1


def test_the_table_has_a_row_for_each_and_no_stray_bars():
    found = {
        "a": [Outcome(key, EQUAL) for key in DRAFTERS],
        "b": [Outcome(None, REFUSED, "b is | refused.")],
    }
    rows = [line for line in table(found, "5").splitlines() if line.startswith("|")]
    assert rows[2] == "| a | equal | equal | equal |  |"
    assert rows[3] == "| b | refused | refused | refused | Is / refused. |"
    assert "Of 2: 1 equal with all three drafters, 0 equal with chains" in table(found, "5")
