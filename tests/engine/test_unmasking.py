"""Policies that fill a canvas: at least one place per pass, and each policy by its paper's rule."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.methods.adablock.drafter import SemanticBlocks
from engine.methods.ccd.drafter import Coherent
from engine.methods.learn2pd.drafter import LearnedFilter
from engine.methods.learn2pd.part import UnmaskingFilter
from engine.methods.localleap.drafter import LocalLeap
from engine.methods.shared.unmasking import Canvas, Confident, Unmasking, fill_in


def rows(confidences, tokens=None):
    """Return logits [L, 5]. At each place, the given token (0 by default) has the given confidence; the other tokens
    share the rest."""
    tokens = tokens or [0] * len(confidences)
    found = torch.tensor([[(1 - c) / 4] * 5 for c in confidences])
    for place, (confidence, token) in enumerate(zip(confidences, tokens, strict=True)):
        found[place, token] = confidence
    return found


def opened(places: int) -> UnmaskingFilter:
    """Return a filter that looks only at the place itself: a confidence above one half counts as right."""
    made = UnmaskingFilter(places, places)
    with torch.no_grad():
        for layer in (made.fc1, made.fc2):
            layer.weight.copy_(torch.eye(places))
            layer.bias.zero_()
        made.fc2.weight *= 100
        made.fc2.bias.fill_(-50)
    return made


class AllAtOnce(Unmasking):
    """One pass fills everything."""

    def choose(self, probabilities, canvas):
        return dict.fromkeys(canvas.open, "only pass")


POLICIES = {
    "all at once": lambda: AllAtOnce(),
    "confident": lambda: Confident(0.8),
    "localleap": lambda: LocalLeap(0.9, 0.7, 2),
    "ccd": lambda: Coherent(2, 3),
    "learn2pd": lambda: LearnedFilter(opened(8), 0.9),
    "adablock": lambda: SemanticBlocks(0.8, 5, 0.6, lambda token: token == 2),
}


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data(), length=st.integers(1, 8), most=st.integers(1, 6))
def test_every_place_is_filled_once_within_the_passes(name, data, length, most):
    given_rows = []

    def read(canvas):
        sure = data.draw(st.lists(st.floats(0.3, 1.0), min_size=length, max_size=length))
        tokens = data.draw(st.lists(st.integers(0, 4), min_size=length, max_size=length))
        given_rows.append((set(canvas.open), sure, tokens))
        return rows(sure, tokens)[: canvas.length]

    canvas = Canvas(length, frozenset({4}))
    fill_in(canvas, POLICIES[name](), read, most)
    assert 1 <= canvas.length <= length and canvas.turns <= most
    assert set(canvas.filled) == set(range(canvas.length))
    assert canvas.turns == len(given_rows)
    for fill in canvas.filled.values():
        assert fill.place in given_rows[fill.turn][0] and fill.why
    ended = [place for place, fill in canvas.filled.items() if fill.token == 4]
    assert ended in ([], [canvas.length - 1]), "nothing is filled behind an end of text"


def test_confident_fills_what_is_sure_and_else_the_surest():
    assert Confident(0.8).choose(rows([0.9, 0.5, 0.85]), Canvas(3)).keys() == {0, 2}
    assert Confident(0.8).choose(rows([0.4, 0.6, 0.5]), Canvas(3)).keys() == {1}


def test_an_anchor_lowers_the_threshold_around_it_and_no_further():
    sure = [0.75, 0.75, 0.6, 0.95, 0.75, 0.75]
    chosen = LocalLeap(0.9, 0.7, 2).choose(rows(sure), Canvas(6))
    assert chosen == {3: "anchor", **dict.fromkeys((1, 4, 5), "near the anchor 4")}
    assert LocalLeap(0.96, 0.7, 2).choose(rows(sure), Canvas(6)).keys() == {3}, "no anchor"


def test_coherence_fills_what_two_passes_agree_on_and_averages_their_laws():
    policy, canvas = Coherent(2, 3), Canvas(4)
    passes = [rows([0.9, 0.6, 0.5, 0.4], [1, 1, 1, 1]), rows([0.9, 0.7, 0.7, 0.6], [1, 1, 2, 1])]
    first = policy.weigh(passes[0], canvas)
    assert torch.equal(first, passes[0]), "nothing is remembered yet"
    chosen = policy.choose(first, canvas)
    assert chosen == {0: "least entropy"}
    canvas.fill(first, chosen)
    second = policy.weigh(passes[1], canvas)
    assert torch.allclose(second[1:3], (passes[0][1:3] + passes[1][1:3]) / 2)
    assert torch.equal(second[3], passes[1][3]), "the fourth was not among the three surest"
    assert policy.choose(second, canvas) == {1: "the same in 2 passes"}


def test_a_block_ends_with_a_sure_delimiter_and_else_has_its_usual_size():
    def end(sure, tokens):
        policy = SemanticBlocks(0.9, 3, 0.5, lambda token: token == 2)
        return policy.end(rows(sure, tokens), Canvas(len(sure)))

    assert end([0.9, 0.6, 0.9, 0.7, 0.9], [0, 2, 0, 2, 0]) == 4, "the surer of two"
    assert end([0.9, 0.4, 0.9, 0.4, 0.9], [0, 2, 0, 2, 0]) == 3
    assert end([0.9, 0.9], [1, 1]) == 2


def test_the_filter_reads_all_places_and_its_own_filled_ones_as_sure():
    part = opened(4)
    with torch.no_grad():
        part.fc1.weight[2] = torch.tensor([1.0, 0, 0, 0])  # place 3 is judged by place 1
    policy, canvas = LearnedFilter(part, 0.9), Canvas(3)
    assert policy.choose(rows([0.4, 0.8, 0.9]), canvas).keys() == {1}
    canvas.fill(rows([0.4, 0.8, 0.9]), {0: "by hand"})
    assert policy.choose(rows([0.4, 0.3, 0.3]), canvas).keys() == {2}
