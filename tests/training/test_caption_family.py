"""The recipe of the family captions at a small size."""

import pytest
import torch

from engine.parts.opening import causal_model, load_language_model
from engine.scenes.film import FRAMES
from engine.scenes.film_talk import FILM_KINDS
from engine.scenes.scene_talk import KINDS
from engine.training import caption_family
from engine.training.caption_family import right_shares, train_draft, train_target
from engine.training.caption_gate import train_gate
from engine.training.caption_parts import train_flash, train_msd
from engine.training.caption_text import PATCHES, ROOM
from engine.training.loop import Budget

pytestmark = pytest.mark.exhaustive
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}
STEP = 32 * (PATCHES + ROOM)


def test_a_small_training_learns_resumes_and_opens(tmp_path, monkeypatch):
    monkeypatch.setattr(caption_family, "MEASURED", 8)
    monkeypatch.setattr(caption_family, "PICTURES_FIRST", 1)  # so the third batch is of films
    folder, work = tmp_path / "captions", tmp_path / "work"
    train_target(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    first = (folder / "model.safetensors.gz").read_bytes()
    train_target(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    assert (folder / "model.safetensors.gz").read_bytes() == first
    train_draft(folder, work, Budget(tokens=4 * STEP), **SHAPE)
    train_gate(folder, work, Budget(tokens=2 * STEP))
    train_msd(folder, work, Budget(tokens=2 * STEP))
    train_flash(folder, work, Budget(tokens=3 * STEP))
    assert load_language_model(str(folder)).frames == FRAMES
    assert set(right_shares(causal_model(str(folder)))) == {*KINDS, *FILM_KINDS}
    assert {path.name for path in (folder / "parts").iterdir()} == {"gate", "msd", "flash_mm"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
