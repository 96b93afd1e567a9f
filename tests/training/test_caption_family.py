"""The recipe of the family captions at a small size."""

import pytest
import torch

from engine.parts.opening import load_language_model
from engine.training import caption_family
from engine.training.caption_family import right_shares, train_draft, train_target
from engine.training.caption_parts import train_gate, train_msd
from engine.training.caption_text import PATCHES, ROOM
from engine.training.loop import Budget

pytestmark = pytest.mark.exhaustive
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}
STEP = 32 * (PATCHES + ROOM)


def test_a_small_training_learns_resumes_and_opens(tmp_path, monkeypatch):
    monkeypatch.setattr(caption_family, "MEASURED", 16)
    folder, work = tmp_path / "captions", tmp_path / "work"
    train_target(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    first = (folder / "model.safetensors.gz").read_bytes()
    train_target(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    assert (folder / "model.safetensors.gz").read_bytes() == first
    train_draft(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    train_gate(folder, work, Budget(tokens=2 * STEP))
    train_msd(folder, work, Budget(tokens=2 * STEP))
    target = load_language_model(str(folder))
    assert set(right_shares(target.model)) == {"caption", "count", "colour", "place", "content"}
    assert {path.name for path in (folder / "parts").iterdir()} == {"gate", "msd"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
