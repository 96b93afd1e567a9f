"""The targets with experts as they are shipped, and what the lesson says of them."""

import pytest

from engine.parts.loading import load_models
from engine.sizes.expert_use import idle, used
from presets import family
from presets.conditions import finished
from presets.lessons.expert_passes import RACES, TARGETS, _tokens, expert_passes


@pytest.fixture(scope="module")
def targets():
    return [load_models(family(name), {}).target for name in TARGETS]


def test_both_targets_are_of_one_size(targets):
    one, other = (target.parameters for target in targets)
    assert abs(one - other) < 0.001 * one


def test_the_lesson_shows_what_the_weights_say(targets):
    texts = [_tokens(finished(race)["none"]) for race in RACES]
    for target, told in zip(targets, expert_passes()["targets"], strict=True):
        using = [used(target, text) for text in texts]
        for rows in (1, 8):
            share = sum(idle(one, rows) for one in using) / len(using)
            assert share == pytest.approx(told["idle"][rows - 1], abs=2e-3)


def test_neighbours_share_experts_on_one_target_alone():
    shared, own = (told["idle"] for told in expert_passes()["targets"])
    assert shared[0] >= 0.8 and own[0] >= 0.8
    assert shared[7] >= 0.6 and own[7] < shared[7] - 0.2


def best_length(told, alpha: float) -> int:
    """Return the draft length that pays most by the weights of the experts that a pass reads. In a large model these
    are the greater part of all weights."""
    tokens = [sum(alpha**i for i in range(k + 1)) for k in range(len(told["idle"]))]
    speeds = [gain / (1 - share) for gain, share in zip(tokens, told["idle"], strict=True)]
    return speeds.index(max(speeds))


@pytest.mark.parametrize("alpha", [0.6, 0.7, 0.8])
def test_the_best_draft_is_shorter_where_tokens_choose_their_own_experts(alpha):
    shared, own = expert_passes()["targets"]
    assert best_length(own, alpha) < best_length(shared, alpha)
