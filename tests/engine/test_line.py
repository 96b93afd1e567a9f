"""The line through observed times: what it predicts, what it forgets, and what it forgives."""

import itertools
import math

import pytest

from engine.methods.smartspec import line as line_module
from engine.methods.smartspec.line import HOPE, Line


def test_a_line_finds_what_varied_and_guesses_the_rest():
    line = Line((0.05, 0.0))
    for step in range(200):
        rows, context = 1 + step % 6, 0.5 + (step * 7 % 11) / 10
        line.see(2.0 + 0.3 * rows + 0.8 * context, rows, context)
    for rows, context in itertools.product((1, 3, 6), (0.6, 1.0, 1.4)):
        truth = 2.0 + 0.3 * rows + 0.8 * context
        assert line.at(rows, context) == pytest.approx(truth, rel=0.03)
    alike = Line((0.05,))
    for _ in range(50):
        alike.see(3.0, 5.0)
    assert alike.at(5.0) == pytest.approx(3.0)
    assert alike.weights[1] == pytest.approx(0.05 * 3.0 / 1.25), "never varied: the guess stays"


def test_a_line_knows_the_bends_and_forgets_no_length():
    """A cost that rises less and less, of which one size was seen long ago."""
    line = Line((0.05,))
    seen = [8.0] * 4 + [32.0, 64.0] * 100
    for rows in seen:
        line.see(10 * math.log2(rows), rows)
    assert line.at(8.0) == pytest.approx(30, rel=0.1)
    assert line.at(32.0) == pytest.approx(50, rel=0.03)
    assert line.at(64.0) == pytest.approx(60, rel=0.03)
    assert 50 < line.at(48.0) < 60


def test_a_size_that_was_slow_by_accident_is_forgiven_in_time():
    """Eight observations of 16 rows came in a busy moment. The longer they are past, the less they count beside the line
    through the others, and the more the choice by ``hoped`` forgives."""
    line = Line((0.05,))
    for _ in range(8):
        line.see(40.0, 16.0)
    predicted, hoped = [line.at(16.0)], [line.hoped(16.0)]
    for _ in range(400):
        for rows in (1.0, 2.0, 64.0):
            line.age()
            line.see(10 + rows, rows)
        predicted.append(line.at(16.0))
        hoped.append(line.hoped(16.0))
    assert predicted[1] > 30 and predicted[-1] == pytest.approx(26, rel=0.02)
    assert hoped[-1] == pytest.approx((1 - HOPE) * predicted[-1], rel=0.01)
    assert line.hoped(2.0) > 0.95 * line.at(2.0), "seen lately"


@pytest.mark.parametrize("least", [1e-6, 0.9])
def test_when_ages_are_put_into_the_sums_changes_no_prediction(monkeypatch, least):
    found = []
    for limit in (0.0, least):
        monkeypatch.setattr(line_module, "LEAST_FRESH", limit)
        line = Line((0.05,))
        for step in range(1500):
            line.age()
            line.see(5.0 + step % 7 + 0.01 * step, 1.0 + step % 5)
        found.append([line.hoped(float(rows)) for rows in range(1, 12)])
    assert found[0] == pytest.approx(found[1])


def test_no_slope_is_negative_and_a_hiccup_counts_little():
    line = Line((0.05,))
    for step in range(60):
        line.see(4.0 - 0.1 * (step % 5), 1 + step % 5)
    assert line.weights[1] == 0 and 3.4 < line.at(3.0) < 4.0
    before = line.at(3.0)
    line.see(4000.0, 3.0)
    assert line.at(3.0) < 1.2 * before
    first = Line((1.0,))
    first.see(500.0, 4)
    first.see(5.0, 4)
    assert first.at(4) == pytest.approx(5.0), "the first of all was a hiccup"
