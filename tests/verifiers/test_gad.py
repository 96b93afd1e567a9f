"""Generalised aggressive decoding: its blocks, its use of a dropped block, and the rule of GAD++."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling, draw, position_noise
from engine.core.tree import ROOT, DraftTree
from engine.methods.gad.drafter import GeneralisedAggressiveDrafter
from engine.rules import Case, verifier
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import shared_models

PROMPT = [3, 5, 7, 3, 5]
ROWS = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.05, 0.05, 0.9]])
SEED = 49  # with which each place of a chain draws another token than the first place would


def test_its_blocks_are_those_of_dflash_and_so_is_its_text():
    models = shared_models(16)
    mine, other = (steps_of(models, key, PROMPT, 30, length=3) for key in ("gad", "dflash"))
    assert [step.tree.tokens for step in mine] == [step.tree.tokens for step in other]
    assert text_of(mine) == text_of(steps_of(models, "none", PROMPT, 30))


def test_with_temperature_the_favourites_are_drafted_one_hot():
    steps = steps_of(shared_models(16), "gad", PROMPT, 30, Sampling(1.0, seed=2), length=3)
    for step in steps:
        for parent, draws in step.tree.draws.items():
            assert [drawn.kind for drawn in draws] == ["one_hot"]
            law = step.tree.laws[draws[0].law]
            assert law.argmax() == step.tree.tokens[step.tree.children(parent)[0]]


# ---- The rest of a dropped block ----------------------------------------------------------------


def rest_of(block, output):
    """Return the rest of the block after the shortest suffix of the output that occurs exactly once in the block, if
    the output has left the block. It is found by trying every suffix."""
    if output[: len(block)] == block[: len(output)]:
        return []
    for size in range(1, len(output) + 1):
        ends = [
            end for end in range(size, len(block) + 1) if block[end - size : end] == output[-size:]
        ]
        if len(ends) == 1:
            return block[ends[0] :]
    return []


@settings(max_examples=200, deadline=None)
@given(block=st.lists(st.integers(0, 4), max_size=7), data=st.data())
def test_the_rest_against_a_search(block, data):
    """An output like a step's: the start of the block, then one token from the target."""
    kept = data.draw(st.integers(0, len(block)))
    output = [*block[:kept], data.draw(st.integers(0, 5))]
    drafter = GeneralisedAggressiveDrafter.__new__(GeneralisedAggressiveDrafter)
    drafter._block, drafter._since = block, output
    assert drafter._rest() == rest_of(block, output)


def test_the_rest_is_a_second_branch():
    """Blocks that say a word twice, the typical fault of parallel drafting: where the target says it once,
    the rest of the dropped block is right."""
    models, drawn, rule = shared_models(16), Sampling(1.0, seed=4), "sampler_match"
    plain = PROMPT + text_of(steps_of(models, "none", PROMPT, 40, drawn, rule))

    class SaysItTwice(GeneralisedAggressiveDrafter):
        def _marginals(self, context, max_depth):
            first, *more = [*plain[len(context) :], 0, 0, 0, 0][:4]
            block = [first, first, *more] if len(context) % 2 else [15] * 5
            length = min(5, max_depth)
            return torch.eye(16)[block][:length] * 0.9 + 0.00625

    with_rest, without = (
        steps_of(models, SaysItTwice, PROMPT, 40, drawn, rule, length=5, realign=realign)
        for realign in (True, False)
    )
    assert text_of(with_rest) == text_of(without) == plain[len(PROMPT) :]
    kept = [s.tree.sources[node] for s in with_rest for node in s.verdict.accepted]
    assert kept.count("rest of the last block") >= 3


# ---- The rule -----------------------------------------------------------------------------------


def case(sampling, tokens):
    """Return a case: a chain, with ROWS as the target's probabilities after the root and each token."""
    tree, parent = DraftTree(), ROOT
    for token in tokens:
        parent = tree.draw(parent, token)
    p = ROWS if not sampling.greedy else torch.eye(3)[ROWS.argmax(-1)]
    return Case(tree, p, ROWS.log(), sampling, 7, JudgeChance(SEED))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0)], ids=("greedy", "sampled"))
@pytest.mark.parametrize(
    "beta, tau, kept",
    [(1, 9.0, 0), (2, 0.5, 0), (2, 0.52, 1), (2, 9.0, 1), (3, 1.7, 1), (3, 1.8, 2)],
)
def test_rank_and_gap_decide(sampling, beta, tau, kept):
    """The first token ranks second, log(5/3) = 0.51 behind; the other third, log(6) = 1.79 behind."""
    judged = case(sampling, (1, 0))
    verdict = verifier("gad", {"beta": beta, "tau": tau}).judge(judged)
    assert verdict.accepted == list(range(kept))
    assert verdict.final == ("bonus" if kept == 2 else "recovered")
    noise = position_noise(SEED, judged.position + kept, 3)
    assert verdict.final_token == draw(judged.p[kept], noise)
    (table,) = verdict.exhibits
    assert [row[1] for row in table.rows] == [2, 3][: len(table.rows)]
    assert table.rows[0][2] == pytest.approx(math.log(5 / 3), abs=1e-3)


def test_a_token_that_cannot_be_written_is_never_kept():
    given_case = case(Sampling(1.0), (0, 0))
    given_case.p[0] = torch.tensor([0.0, 1.0, 0.0])
    verdict = verifier("gad", {"beta": 50, "tau": 50.0}).judge(given_case)
    assert (verdict.accepted, verdict.final_token) == ([], 1)
    assert verdict.exhibits[0].to_dict(str)["rows"][0][2] is None


def test_it_is_lossy_and_shows_it():
    models = shared_models(16)
    plain = text_of(steps_of(models, "none", PROMPT, 40))
    lax = verifier("gad", {"beta": 16, "tau": 50.0})
    assert text_of(steps_of(models, "gad", PROMPT, 40, rule=lax)) != plain, (
        "any token of the block may stay"
    )
    assert not verifier("gad").lossless_with({"one_hot"})
    strict = verifier("gad", {"beta": 1, "tau": 0.0})
    assert text_of(steps_of(models, "gad", PROMPT, 40, rule=strict)) == plain, (
        "only the favourite: the target's own text"
    )
