"""The recipe of the image family: pictures that depend on their index alone, and a model that opens."""

import re

import pytest
import torch
from transformers import AutoTokenizer

from engine.parts.opening import load_language_model
from engine.training.loop import Budget
from engine.training.pictures import recipe
from engine.training.pictures.digits import ANY_TOKEN, END_TOKEN, FIRST_DIGIT, PICTURE

pytestmark = pytest.mark.exhaustive


def test_a_batch_is_a_name_a_picture_and_its_end():
    one, again, other = (recipe.batch(index, 3, rows=40) for index in (5, 5, 6))
    assert torch.equal(one, again) and not torch.equal(one, other)
    names, pictures, ends = one[:, 0], one[:, 1:-1], one[:, -1]
    assert ((names == ANY_TOKEN) | (names >= FIRST_DIGIT)).all() and (names == ANY_TOKEN).any()
    assert pictures.shape == (40, PICTURE.places) and pictures.max() < PICTURE.count
    assert (pictures > 0).any(1).all() and (ends == END_TOKEN).all()


def test_a_small_training_learns_resumes_and_opens(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "ROWS", 8)
    monkeypatch.setattr(recipe, "batch", lambda index, seed, rows=8: BATCH(index, seed, rows))
    shape = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 1}
    tokens = 8 * (PICTURE.places + 2)
    folder, checkpoint = tmp_path / "image", tmp_path / "image.pt"
    said = []
    for count in (2, 24, 24):
        recipe.train_pictures(folder, checkpoint, Budget(tokens=count * tokens), **shape)
        said.append(capsys.readouterr().out.splitlines()[-2])
    few, many, again = said
    assert few.startswith("16 pictures") and many.startswith("192 pictures") and again == many
    first, last = (float(re.search(r"held out ([\d.]+)", line)[1]) for line in (few, many))
    assert last < first
    assert (
        AutoTokenizer.from_pretrained(folder).vocab_size
        == load_language_model(str(folder)).vocab_size
    )
    assert load_language_model(str(folder)).picture == PICTURE
    assert f"{last:.3f}" in (folder / "README.md").read_text("utf-8")


BATCH = recipe.batch


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
