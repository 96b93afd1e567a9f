"""Acceptance on densities: written points have the target's law, a planted bias is found, acceptance is the overlap."""

import json

import pytest
import torch

from engine.bench.continuous_suite import report_text
from engine.continuous import continuous_figures as figures
from engine.continuous.acceptance import from_residual, from_target, write
from engine.continuous.continuous_figures import p_value
from engine.continuous.mixtures import DRAFT, TARGET, Walk, overlap
from presets.methods import cards

ALPHA = 0.01  # how often a comparison rejects clouds of the same law
POINTS = 500


def compared(points, seed=40):
    truth = TARGET.draw(POINTS, figures.seeded(seed))
    return p_value(figures.evidence(points), figures.evidence(truth))


def test_what_is_written_has_the_targets_law_and_a_planted_bias_is_caught():
    assert compared(figures.judged(POINTS, 41).points) > ALPHA
    assert compared(figures.judged(POINTS, 41, replaced=from_target).points) <= ALPHA
    assert compared(DRAFT.draw(POINTS, figures.seeded(42))) <= ALPHA


def test_walks_written_in_passes_have_the_targets_law():
    plain = figures.walks(150, 43, None)
    assert p_value(figures.walks(150, 44, from_residual), plain) > ALPHA
    _, passes = write(Walk(TARGET), Walk(DRAFT), 60, 4, figures.seeded(45))
    assert passes < 45
    alike, passes = write(Walk(TARGET), Walk(TARGET), 60, 4, figures.seeded(46))
    assert alike.shape == (60, 2) and passes == 12, "a draft like the target is kept whole"


@pytest.mark.parametrize("shift", [0.0, 1.5, 4.0])
def test_acceptance_is_the_overlap_integral(shift):
    row = figures.measured_overlap(shift, 8000)
    assert abs(row.kept - row.integral) < 4 * row.error
    refusal = 1 / (1 - row.integral)  # points drawn from p per point of the residual
    assert row.tried == pytest.approx(refusal, rel=0.15)


def test_the_integral_knows_its_ends():
    assert overlap(TARGET, TARGET) == pytest.approx(1.0, abs=1e-3)
    assert overlap(TARGET, TARGET.shifted(torch.tensor([12.0, 0.0])), reach=20.0) < 1e-6


def test_the_two_sample_test_keeps_its_level():
    """For clouds of one law, p_value <= 0.05 has a chance of at most 5 %; 13 times in 100 has a chance of 0.1 %."""
    pairs = (torch.randn(2, 30, 2, generator=figures.seeded(seed)) for seed in range(100))
    assert sum(p_value(one, other, 99) <= 0.05 for one, other in pairs) <= 12


def test_the_card_shows_what_the_command_prints(monkeypatch):
    monkeypatch.setattr(figures, "DRAFTS", 400)
    monkeypatch.setattr(figures, "TESTED", 60)
    monkeypatch.setattr(figures, "WALKS", 12)
    found = figures.measured(quick=True)
    text = report_text(found)
    shown = [one.to_dict(str) for one in figures.exhibits(found)]
    json.dumps(shown, allow_nan=False)
    assert [one["kind"] for one in shown] == ["clouds", "curve", "table"]
    for row, integral in zip(found.overlaps, shown[1]["series"][1]["y"], strict=True):
        assert f"{integral:.3f}" in text and f"{row.kept:.3f}" in text
    assert all(name in text for name, _ in shown[2]["rows"])
    assert cards()["continuous"].drawn_by == figures.__name__
