"""Typical acceptance: the threshold and the longest path on hand-made p, and where it is shown as lossy."""

import math

import pytest
import torch

from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.methods import drafters
from engine.rules import Case, verifier
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import shared_models

UNSURE = [0.25] * 4
"""Entropy log 4: the threshold is delta / 4 where that is below epsilon."""
SURE = [0.97, 0.01, 0.01, 0.01]
"""Entropy 0.168: exp(-H) = 0.8456."""


WARM = Sampling(1.0)


def judged(tree, rows, **options):
    p = torch.tensor(rows)
    return verifier("typical", options).judge(Case(tree, p, p.log(), WARM, 7, JudgeChance(0)))


def chain(*tokens):
    tree = DraftTree()
    tree.chain(tokens, "head")
    return tree


@pytest.mark.parametrize(
    "row, options, kept",
    [
        (UNSURE, {"epsilon": 0.3, "delta": 0.9}, True),  # .25 > min(.3, .9 / 4 = .225)
        (UNSURE, {"epsilon": 0.3, "delta": 1.0}, False),  # .25 > .25 is false
        (UNSURE, {"epsilon": 0.2, "delta": 1.0}, True),
        ([0.2, 0.79, 0.005, 0.005], {"epsilon": 0.3, "delta": 0.3}, True),  # exp(-.560) * .3 = .171
        (
            [0.15, 0.84, 0.005, 0.005],
            {"epsilon": 0.3, "delta": 0.3},
            False,
        ),  # exp(-.484) * .3 = .185
        ([0.15, 0.84, 0.005, 0.005], {}, True),  # epsilon .09
        ([0.0, 1.0, 0.0, 0.0], {"epsilon": 0.0}, False),  # impossible for the target
    ],
)
def test_the_threshold_is_the_papers(row, options, kept):
    entropy = -sum(one * math.log(one) for one in row if one)
    given = {"epsilon": 0.09, "delta": 0.3} | options
    expected = min(given["epsilon"], given["delta"] * math.exp(-entropy))
    assert (row[0] > expected) == kept, "the numbers of this test"
    verdict = judged(chain(0), [row, SURE], **options)
    assert verdict.accepted == [0][: int(kept)]
    assert verdict.final == ("bonus" if kept else "recovered")
    (entry,) = verdict.judgements
    assert (entry.accept, entry.coin) == (float(kept), None)
    assert verdict.exhibits[0].rows[0][2] == pytest.approx(expected, abs=1e-6)


def test_the_longest_path_is_kept_though_another_child_is_likelier():
    tree = DraftTree()
    short = tree.draw(ROOT, 0, source="head 1")
    long = tree.draw(ROOT, 1, source="head 1")
    never = tree.draw(ROOT, 2, source="head 1")
    end = tree.draw(long, 0, source="head 2")
    rows = [[0.5, 0.3, 0.0, 0.2], SURE, [0.6, 0.2, 0.1, 0.1], SURE, [0.1, 0.2, 0.3, 0.4]]
    verdict = judged(tree, rows)
    assert verdict.accepted == [long, end] and verdict.walk == [ROOT, long, end]
    assert verdict.status == ["ignored", "accepted", "rejected", "accepted"]
    assert [(entry.node, entry.accept) for entry in verdict.judgements] == [
        (long, 1.0),
        (never, 0.0),
        (end, 1.0),
    ]
    assert verdict.final_token == 3 and verdict.final == "bonus"
    outcomes = {row[0].id: row[3] for row in verdict.exhibits[0].rows[:3]}
    assert outcomes == {0: "a longer path", 1: "kept", 2: "refused"}
    assert short not in verdict.walk


def test_of_paths_of_one_length_the_likeliest_is_kept():
    tree = DraftTree()
    for token in (0, 1):
        tree.draw(tree.draw(ROOT, token, source="head 1"), 2, source="head 2")
    rows = [[0.6, 0.4, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1], SURE, [0.0, 0.0, 1.0, 0.0], SURE]
    assert judged(tree, rows).accepted == [2, 3], ".4 * 1 and not .6 * .2"
    rows[1], rows[3] = [0.2, 0.2, 0.5, 0.1], [0.2, 0.1, 0.6, 0.1]
    assert judged(tree, rows).accepted == [0, 1], ".6 * .5 and not .4 * .6"


def test_the_final_token_is_the_favourite_whatever_the_seed():
    """As in the paper; this is another way in which the text is not the target's."""
    assert {judged(chain(), [[0.3, 0.4, 0.3, 0.0]]).final_token for _ in range(20)} == {1}


@pytest.mark.parametrize(
    "key", sorted(drafters().keys() & {"medusa", "ddtree", "chain", "rsd_s", "multi_chain"})
)
def test_at_temperature_zero_it_writes_the_text_of_the_greedy_rule(key):
    models = shared_models(16)
    plain = text_of(steps_of(models, "none", [3, 5, 7], 24))
    steps = steps_of(models, key, [3, 5, 7], 24, rule="typical")
    assert text_of(steps) == plain
    assert any(step.verdict.accepted for step in steps)
