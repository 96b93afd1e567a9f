"""Which drafts a pass can judge itself, and what happens to the others."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.tree import DraftTree
from engine.fast.gpu.inputs import DeviceRows, Size
from engine.fast.gpu.judge import DeviceJudge
from engine.fast.gpu.question import JudgingKey, Question
from engine.fast.gpu.verdict import JudgedInputs
from engine.fast.kernels.flat_tree import Places
from engine.fast.kernels.position_noise import noise_rows
from engine.methods.none.drafter import NoDrafter
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import built
from tests.engine.unrecorded import PROMPT, assert_same, steps_of

FLAT = torch.full((16,), 1 / 16)


class Fixed(NoDrafter):
    """Drafts the same tree whenever it fits, drawn from a flat q."""

    def __init__(self, draws, kinds):
        super().__init__({})
        self.draws, self.said = draws, frozenset(kinds)

    def kinds(self, sampling):
        return self.said

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in self.draws:
            tree.draw(-1, token, "iid", FLAT, "fixed")
        return tree


@pytest.mark.parametrize(
    ("drafter", "prompt", "inside"),
    [
        (Fixed([3, 4, 5], {"iid"}), PROMPT, True),
        (Fixed([3, 3, 3, 4, 3, 4], {"iid"}), PROMPT, False),  # more draws than rows
        (Fixed([3, 4, 5], {"one_hot"}), PROMPT, False),  # a q is given, but there is no room for it
        (Fixed([3, 4, 5], {"iid"}), [7], None),  # the first pass makes the buffers
    ],
)
def test_what_does_not_fit_is_judged_after_the_pass(drafter, prompt, inside, static_models, judged):
    assert drafter.device_twin() is drafter
    target = language_model(static_models.target.model, None, "t", lean=False, static=True)
    given = Models(target), drafter, "rejection", Sampling(0.9, seed=3)
    found = steps_of(*given, False, prompt)
    assert_same(found, steps_of(*given, True, prompt))
    if inside is None:
        assert not judged[0] and all(judged[1:])
    else:
        # a step without room for a draft can always be judged in the pass
        drafted = [bool(len(step.tree)) for step in found]
        assert [one for one, had in zip(judged, drafted, strict=True) if had].count(inside) == sum(
            drafted
        )


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("chain", "no buffers yet"),
        ("chain", "no capture"),
        ("ddtree", "too large"),
    ],
)
def test_what_is_on_the_device_only_is_fetched_then(key, why, static_models, static_blocks, judged):
    target = language_model(static_models.target.model, None, "t", lean=False, static=True)
    given = Models(target, static_models.parts)
    if why == "no capture":
        target.buffer_sets.usable = False

    def steps(given, recorded):
        drafter = built(key, given)
        if why == "too large":
            drafter.settings["budget"] = 200
        prompt = [7] if why == "no buffers yet" else PROMPT
        return steps_of(given, drafter, "rejection", Sampling(0.9, seed=3), recorded, prompt, 12)

    assert_same(steps(given, False), steps(static_models, True))
    assert judged[0] is False


def test_noise_is_made_once_and_while_the_device_works(static_models, monkeypatch):
    order = []

    def noted(seed, first, count, vocabulary, device):
        order.extend(range(first, first + count))
        return noise_rows(seed, first, count, vocabulary, device)

    def arrived(numbers):
        order.append("verdict")
        return numbers()

    monkeypatch.setattr("engine.fast.gpu.judge.noise_rows", noted)
    monkeypatch.setattr(DeviceJudge, "arrived", staticmethod(arrived))
    found = steps_of(
        static_models, built("chain", static_models), "rejection", Sampling(0.9, seed=3), False
    )
    made = [place for place in order if place != "verdict"]
    assert made == list(range(len(PROMPT), len(PROMPT) + len(made)))
    before_first = order[: order.index("verdict")]
    assert len(before_first) == 2 * (1 + len(found[0].tree))
    assert order.count("verdict") == len(found)


def test_a_q_of_fewer_tokens_is_filled_up():
    key = JudgingKey("rejection", Sampling(1.0), frozenset({"iid"}))
    inputs = JudgedInputs(Size(3, 1), torch.device("cpu"), [key], 9)
    tree = DraftTree()
    for q in (torch.full((9,), 1 / 9), torch.full((6,), 1 / 6)):
        tree = DraftTree()
        tree.draw(-1, 2, "iid", q, "test")
        question = Question(key, Places.of(tree), [0.5], torch.full((2, 9), 2.0))
        inputs.load(DeviceRows([1, 2], 4, [0, 1], [1, 3], question=question))
        expected = torch.nn.functional.pad(q, (0, 9 - len(q)))
        assert torch.equal(inputs.tree(0).q[0], expected)
    found = inputs.tree(0)
    assert found.first.tolist() == [0, 1, 1, 1] and found.draws.tolist() == [0, 0, 0]
    assert found.q_row.tolist()[:2] == [0, -1] and inputs.coins[0].tolist() == [0.5, 0, 0]
