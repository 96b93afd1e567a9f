"""Prompt tokens in training: they are read as in a run, they learn, and their accepted tokens are counted right."""

import pytest
import torch

from engine.core.seen import Draft, Probes
from engine.core.tree import ROOT, DraftTree
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.training.lessons import agreeing, learn, lesson, student_of

pytestmark = pytest.mark.exhaustive

TOKENS = torch.tensor([[5, 9, 2, 40, 7, 7, 12, 30], [1, 8, 8, 3, 60, 2, 2, 9]])


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def module(request):
    return tiny_hf_model(request.param).requires_grad_(False)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def test_they_are_read_as_in_a_run(module):
    """Reading them behind several places of a text at once gives the same as behind one place in a step's pass."""
    student = student_of("ppd", module, places=2, members=2)
    part = student.start()
    asked = [1, 4, 5]
    found = student.logits(part, TOKENS, asked)
    target = tiny_model(module.config.model_type)
    for window, text in enumerate(TOKENS.tolist()):
        for index, place in enumerate(asked):
            session = target.session(32)
            session.prefill(text[:place])
            probes = Probes.embedded(part.rows.detach(), [ROOT, ROOT, 0, 1])
            seen = session.look(Draft(text[place], DraftTree(), place + 1, probes))
            expected = part.logits(seen.probes)
            torch.testing.assert_close(found[window, index], expected, rtol=1e-3, atol=1e-3)


def test_they_learn(module):
    student = student_of("ppd", module, places=2, asked=6)
    part = student.start().requires_grad_(True)
    tokens = torch.randint(61, (8, 20), generator=torch.Generator().manual_seed(2))
    losses = learn(lambda index: student.loss(part, lesson(student, tokens, index)), part, 40, 0.05)
    assert sum(losses[-8:]) < 0.95 * sum(losses[:8])
    assert all(weight.grad is None for weight in module.parameters())


def test_what_is_not_counted_is_not_learned(module):
    student = student_of("ppd", module, places=2, asked=64)
    part = student.start()
    nothing = torch.zeros_like(TOKENS, dtype=torch.bool)
    assert student.loss(part, lesson(student, TOKENS, counted=nothing)).item() == 0


def test_what_would_be_kept(module):
    """For each root, the prompt tokens behind the token before it are compared with the text, place by place."""
    student = student_of("ppd", module, places=3)
    part = student.start()
    every = student.logits(part, TOKENS, list(range(7))).argmax(-1)
    tokens = TOKENS.clone()
    tokens[0, 3:6] = every[0, 1]  # read behind token 1, so independent of later tokens
    kept = student.accepted(part, lesson(student, tokens))
    again = student.logits(part, tokens, list(range(7))).argmax(-1)
    for window in range(2):
        for root in range(8):
            right = agreeing(again[window, root - 1], tokens[window, root + 1 :]) if root else 0
            assert kept[window, root] == right
    assert kept[0, 2] == 3
