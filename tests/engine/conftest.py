"""Models on static buffers, for the tests of runs that nobody watches."""

import copy

import pytest
import torch

from engine.gpu.text_slot import TextSlot
from engine.parts.block_context import StaticContext, slots_of
from engine.parts.loading import Models
from engine.target.language_model import LanguageModel
from tests.verifiers.tiny import tiny_models


@pytest.fixture(scope="session")
def static_models() -> Models:
    """The draft is the target with a little noise on it."""
    found = tiny_models(16)
    near = copy.deepcopy(found.target.model)
    torch.manual_seed(0)
    for weight in near.parameters():
        weight += 0.1 * torch.randn_like(weight)
    target, draft = (
        LanguageModel(one, None, "tiny", lean=False, static=True)
        for one in (found.target.model, near)
    )
    return Models(target, draft, found.diffusion)


@pytest.fixture
def static_blocks(static_models, monkeypatch):
    slots = slots_of(static_models.diffusion)
    monkeypatch.setattr("engine.drafters.marginals.block_context", lambda _: StaticContext(slots))


@pytest.fixture
def judged(monkeypatch) -> list[bool]:
    """Of each step, whether the target's pass judged it."""
    seen, judge = [], TextSlot.judge

    def call(*arguments):
        found = judge(*arguments)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(TextSlot, "judge", call)
    return seen
