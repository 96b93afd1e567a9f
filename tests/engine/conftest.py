"""Models on static buffers, for the tests of unrecorded runs."""

import shutil
from pathlib import Path

import pytest

from engine.fast.gpu.text_buffers import TextBuffers
from engine.methods import drafters
from engine.methods.shared.static_block_context import StaticContext, buffer_sets_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from tests.pairs import strangers_pair
from tests.verifiers.tiny import tiny_models


def on_static_buffers(module):
    return language_model(module, None, "tiny", lean=False, static=True)


@pytest.fixture(scope="session")
def static_models() -> Models:
    """Return a target, and a draft that is the target with a little noise."""
    target = on_static_buffers(tiny_models(16).target.model)
    return tiny_parts(target, drafters().values(), on_static_buffers)


@pytest.fixture
def static_blocks(static_models, monkeypatch):
    denoiser = static_models.part("diffusion")
    sets = buffer_sets_of(denoiser)
    monkeypatch.setattr(denoiser, "make_context", lambda _: StaticContext(sets))


@pytest.fixture
def judged(monkeypatch) -> list[bool]:
    """Return a list that gets, for each step, whether the target's pass judged it."""
    seen, judge = [], TextBuffers.judge

    def call(*arguments):
        found = judge(*arguments)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(TextBuffers, "judge", call)
    return seen


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a checkpoint as a stranger brings it."""
    return strangers_pair(tmp_path_factory.mktemp("pair"))[0]


@pytest.fixture
def folder(whole, tmp_path):
    """Return a copy of the checkpoint, which a test may spoil."""
    return Path(shutil.copytree(whole, tmp_path / "models" / "m"))
