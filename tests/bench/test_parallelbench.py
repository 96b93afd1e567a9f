"""List operations: their dependence, computed from the target's distribution, and the other counts."""

import json
import math

import pytest
import torch

from engine.bench import parallelbench_suite as parallelbench
from engine.bench.dependence import drawn_laws, of_laws
from engine.bench.suite import Plan
from engine.methods import drafters
from presets import family, prompts
from tests.training.lessons import VOCABULARY, tiny_target
from viz.suite import suite_figures


def test_dependence_is_the_total_correlation():
    """Two places, the second a copy of the first: C = log 2, over two places. Two fair coins: C = 0."""
    half, first, second = [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]
    copied = torch.tensor([[half, first], [half, second]], dtype=torch.float64)
    told = of_laws(copied)
    assert told.correlation == pytest.approx(math.log(2) / 2)
    assert told.entropy == pytest.approx(math.log(2) / 2)
    assert of_laws(torch.full((5, 2, 2), 0.5)).correlation == pytest.approx(0, abs=1e-9)


def test_laws_are_the_models_own_and_an_end_is_the_end():
    target, prompt = tiny_target(), [5, 9, 2]
    laws = drawn_laws(target, prompt, 4, 6, seed=1)
    assert laws.shape == (6, 4, VOCABULARY)
    expected = target(input_ids=torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
    assert torch.allclose(laws[:, 0], expected.expand(6, -1), atol=1e-5)
    spread = (laws[:, 2] - laws[:1, 2]).abs().sum()
    assert spread > 0.1, "each text goes its own way"
    ended = drawn_laws(target, prompt, 3, 6, seed=1, ends=frozenset(range(VOCABULARY)))
    assert (ended[:, 1:, 0] == 1).all()


def test_ranks():
    assert parallelbench.rank_correlation([1, 2, 5], [9, 4, 3]) == pytest.approx(-1)
    assert parallelbench.rank_correlation([1, 2, 2, 5], [1, 3, 3, 9]) == pytest.approx(1)
    assert parallelbench.rank_correlation([1, 2], [3, 3]) is None


def test_every_diffusion_drafter_is_asked():
    known = {key for key, cls in drafters().items() if cls.family == "diffusion"}
    assert {cls.key for cls in parallelbench.candidates()} == known | {"chain"}


def test_shuffling_depends_more_than_copying_and_blind_drafts_lose_by_it(
    usual_sizes, few_graphs, monkeypatch
):
    """Runs the suite itself on the embedded models."""
    some = [cls for cls in parallelbench.candidates() if cls.key in ("chain", "dflash")]
    values = {
        "QUICK": Plan(prompts=1, rounds=1, tokens=12),
        "TEXTS": 12,
        "candidates": lambda: some,
    }
    for name, value in values.items():
        monkeypatch.setattr(parallelbench, name, value)
    ids = ("operations-01", "operations-35")
    cards = [card for card in prompts("operations") if card["id"] in ids]
    report = parallelbench.measure(family(), {"operations": cards}, True)
    rows = report.data["rows"]
    of = {(row["task"], row["drafter"]): row for row in rows if row["sampling"] == "greedy"}
    copy, shuffle = of["copy", "dflash"], of["shuffle", "dflash"]
    assert copy["correlation"] < 0.1 < shuffle["correlation"]
    assert copy["accepted"] > shuffle["accepted"]
    told = report.text
    assert told.index("copy  ") < told.index("shuffle  ") and "rank correlation" in told
    greedy, drawn = suite_figures(json.dumps(report.data))
    assert len(greedy.data) == len(drawn.data) == 2
    assert rows[0]["task"] == "copy"
