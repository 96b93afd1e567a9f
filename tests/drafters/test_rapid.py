"""A short prompt for the draft model: which pieces it keeps, the drafts after it, and the transfer."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling, display_distribution
from engine.core.tree import ROOT, DraftTree
from engine.methods.rapid.retrieved_prompt import bm25, shortened
from engine.methods.rapid.rule import moved_towards
from engine.rules import Case, verifier
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import shared_models, tiny_models

KEY = "rapid"
LONG = [3, 5, 7, 2, 9, 11, 4, 1, 8, 13, 6, 0, 12, 10, 14, 2, 7, 5, 3, 15, 9, 9, 4, 7]
SHORT = {"ending": 4, "piece": 4, "retrieved": 8}

# ---- Which pieces -------------------------------------------------------------------------------


def test_scores_are_those_of_okapi_bm25():
    """By the formula of the paper, written out for one piece: k1 = 1.2, b = 0.75."""
    pieces = [[1, 1, 2, 3], [1, 4, 4, 4], [5, 6]]
    scores = bm25(pieces, [1, 5, 9, 1])
    rarity = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    flat = 1.2 * (1 - 0.75 + 0.75 * 4 / (10 / 3))
    assert scores[0] == pytest.approx(rarity * 2 * 2.2 / (2 + flat))
    assert scores[0] > scores[1] > 0 and scores[2] > scores[0], "5 is rarer than 1"
    assert bm25(pieces, [9]) == [0, 0, 0]


@settings(max_examples=200, deadline=None)
@given(
    prompt=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    ending=st.integers(1, 10),
    piece=st.integers(1, 8),
    most=st.integers(0, 20),
)
def test_a_short_prompt_keeps_its_ends_and_the_best_pieces_in_order(prompt, ending, piece, most):
    short = shortened(prompt, ending, piece, most)
    if len(prompt) <= 1 + most + ending:
        assert short.tokens == prompt and not short.pieces
        return
    kept = [one for one in short.pieces if one.kept]
    between = [token for one in kept for token in prompt[one.start : one.end]]
    assert short.tokens == [prompt[0], *between, *prompt[-ending:]] and len(between) <= most
    assert [one.start for one in short.pieces] == list(range(1, len(prompt) - ending, piece))
    assert short.pieces[-1].end == len(prompt) - ending
    room = most - len(between)
    for one in short.pieces:
        if not one.kept and one.score > 0 and len(one) <= room:
            raise AssertionError("there was room for it")
        if not one.kept and len(one) == piece:
            assert all(other.score >= one.score for other in kept if len(other) == piece)


# ---- Drafts after it ----------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_q_is_what_the_draft_model_says_behind_the_short_prompt(sampling):
    models = shared_models(16)
    short = shortened(LONG, SHORT["ending"], SHORT["piece"], SHORT["retrieved"])
    steps = steps_of(models, KEY, LONG, 20, sampling, length=3, **SHORT)
    written: list[int] = []
    for step in steps:
        text = [*short.tokens, *written]
        for node, token in enumerate(step.tree.tokens):
            logits = models.parts["draft"].session(len(text) + 1).extend(text)
            q = float(display_distribution(logits, sampling)[token])
            assert step.tree.q[node] == pytest.approx(q, abs=1e-4)
            text.append(token)
        written += step.output
    assert len(short.tokens) == 13 < len(LONG)
    rule = None if sampling.greedy else "sampler_match"
    plain, again = (
        text_of(steps_of(models, key, LONG, 20, sampling, rule, **more))
        for key, more in (("none", {}), (KEY, SHORT))
    )
    assert plain == again


def test_a_prompt_too_long_for_the_draft_model_can_be_drafted_behind():
    models = tiny_models(16)
    models.parts["draft"].max_context = 20
    chain = steps_of(models, "chain", LONG, 10, length=2)
    assert not any(len(step.tree) for step in chain)
    steps = steps_of(models, KEY, LONG, 10, length=2, **SHORT)
    drafted = [bool(len(step.tree)) for step in steps]
    assert drafted[0] and not drafted[-1], "20 places: 13 of the short prompt, then what is written"
    assert text_of(steps) == text_of(chain)


def test_it_shows_what_the_draft_model_reads():
    (first, *_) = steps_of(shared_models(16), KEY, LONG, 10, length=2, **SHORT)
    gauge, words = first.tree.exhibits
    assert (gauge.value, gauge.maximum) == (13, len(LONG))
    told = "".join(part for line in words.lines for part in line if isinstance(part, str))
    assert told.startswith("2 of 5 pieces are read") and told.count("left out") == 3


# ---- The transfer -------------------------------------------------------------------------------

P = torch.tensor([0.5, 0.3, 0.15, 0.05])
Q = torch.tensor([0.1, 0.6, 0.29, 0.01])


def one_draw(token, transfer, coins, sampling=None):
    sampling = sampling or Sampling(1.0)
    tree = DraftTree()
    tree.draw(ROOT, token, "one_hot" if sampling.greedy else "iid", Q)
    rows = torch.stack([P, P])
    given_p = torch.eye(4)[rows.argmax(-1)] if sampling.greedy else rows

    class Coins(JudgeChance):
        def toss(self):
            return coins.pop(0)

    case = Case(tree, given_p, rows.log(), sampling, 7, Coins(0))
    return verifier("rapid", {"transfer": transfer}).judge(case)


def test_the_moved_p_follows_the_gradient_of_the_distillation_loss():
    """softmax(log p + transfer * (q - p)), except for the token to which q gives too little."""
    moved = moved_towards(P.double(), Q.double(), 2.0)
    weights = [0.5 * math.exp(-0.8), 0.3 * math.exp(0.6), 0.15 * math.exp(0.28), 0.05]
    expected = torch.tensor(weights, dtype=torch.float64)
    assert torch.allclose(moved, expected / expected.sum(), atol=1e-6)
    logits = P.double().log().requires_grad_()
    divergence = (Q.double() * (Q.double().log() - logits.log_softmax(-1))).sum()
    (gradient,) = torch.autograd.grad(divergence, logits)
    assert torch.allclose(gradient[:3], (P - Q).double()[:3], atol=1e-6)
    assert moved_towards(torch.tensor([0.0, 1.0]), torch.tensor([0.9, 0.1]), 9.0)[0] == 0


def test_coin_and_residual():
    moved = moved_towards(P.double(), Q.double(), 2.0)
    (told,) = one_draw(1, 2.0, [0.999]).judgements
    assert told.accept == pytest.approx(float(moved[1] / 0.6)) and told.p == pytest.approx(
        float(moved[1])
    )
    assert told.accept > float(P[1] / Q[1]), "likelier to stay than without the transfer"
    refused = one_draw(1, 2.0, [0.999])
    left = torch.maximum(P - Q, P - moved.float()).clamp(min=0)
    assert torch.allclose(refused.residuals[ROOT].float(), left / left.sum(), atol=1e-5)
    assert refused.final == "recovered" and refused.status == ["rejected"]
    kept = one_draw(1, 2.0, [0.0])
    assert kept.final == "bonus" and kept.accepted == [0]


@pytest.mark.parametrize("token", range(4))
@pytest.mark.parametrize("coin", [0.0, 0.3, 0.7, 0.999])
def test_without_transfer_it_is_rejection_sampling(token, coin):
    tree = DraftTree()
    tree.draw(ROOT, token, "iid", Q)
    mine = one_draw(token, 0.0, [coin])

    class Coins(JudgeChance):
        def toss(self):
            return coin

    case = Case(tree, torch.stack([P, P]), None, Sampling(1.0), 7, Coins(0))
    other = verifier("rejection").judge(case)
    assert (mine.accepted, mine.final_token) == (other.accepted, other.final_token)
    assert mine.judgements[0].accept == pytest.approx(other.judgements[0].accept)


def test_at_temperature_zero_the_favourite_of_the_moved_p_is_kept():
    for transfer, kept in ((0.0, []), (0.5, []), (2.0, [0])):
        verdict = one_draw(1, transfer, [], Sampling())
        assert verdict.accepted == kept and verdict.judgements[0].coin is None
        assert verdict.final_token == 0, "the target's own favourite"


def test_the_transfer_changes_a_text_and_none_does_not():
    models = shared_models(16)

    def text(transfer):
        rule = verifier("rapid", {"transfer": transfer})
        return text_of(steps_of(models, KEY, LONG, 20, rule=rule, length=3, **SHORT))

    plain = text_of(steps_of(models, "none", LONG, 20))
    assert text(0.0) == plain != text(30.0)
    assert not verifier("rapid").lossless_with({"iid"})
