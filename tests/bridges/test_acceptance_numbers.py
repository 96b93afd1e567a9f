"""The five numbers called acceptance, from one count that is small enough to work out by hand."""

import pytest

from engine.bridges.acceptance_numbers import NUMBERS, cut_short, numbers, numbers_of, survival
from engine.bridges.step_counts import StepCounts

STEPS = [(3, 3), (3, 1), (3, 0), (2, 2), (3, 1)]
"""Drafted and kept. Position 1 is reached five times and kept four, 2: four and two, 3: once and once (the fourth step drafted
two only). 14 tokens are drafted, 7 kept."""


@pytest.fixture
def counts():
    found = StepCounts()
    for drafted, kept in STEPS:
        found.add(drafted, kept)
    return found


def test_positions_are_counted(counts):
    assert counts.positions() == [
        {"position": 1, "reached": 5, "accepted": 4},
        {"position": 2, "reached": 4, "accepted": 2},
        {"position": 3, "reached": 1, "accepted": 1},
    ]
    assert (counts.total, counts.drafted, counts.accepted) == (5, 14, 7)


def test_without_lengths_nobody_knows_what_was_reached(counts):
    counts.add(None, 2)
    assert counts.drafted is None
    assert [each["accepted"] for each in counts.positions()] == [5, 3, 1]
    assert not any("reached" in each for each in counts.positions())


def test_the_five_numbers(counts):
    found = numbers(counts.positions(), steps=5, drafted=14, new_tokens=11)
    assert found["kept_share"] == 0.5
    assert found["conditional"] == [4 / 5, 2 / 4, 1.0]
    assert found["unconditional"] == [4 / 5, 2 / 5, 1 / 5]
    assert found["mean_without_bonus"] == 7 / 5 and found["mean_with_bonus"] == 12 / 5
    assert found["block_efficiency"] == 11 / 5, "the last step of the text was cut by one token"
    assert {each.key for each in NUMBERS} == found.keys() - {"unconditional"}
    assert survival(counts.positions()) == [4 / 5, 2 / 5, 1 / 5]
    assert cut_short(counts.positions()), "one draft of two tokens was kept whole"
    assert not cut_short([{"reached": 3, "accepted": 2}, {"reached": 2, "accepted": 0}])


def test_what_is_not_known_is_none():
    assert set(map(str, numbers().values())) == {"None", "[]"}
    kept = [{"position": 1, "accepted": 3}]
    assert numbers(kept)["conditional"] == [None] and survival(kept) is None
    stated = {"stated": {"mean_with_bonus": 2.5}, "steps": 10}
    assert numbers_of(stated)["mean_with_bonus"] == 2.5
    assert numbers([{"position": 1, "reached": 0, "accepted": 0}], steps=0)["conditional"] == [None]
