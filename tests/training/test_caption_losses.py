"""What the cell of FLASH is taught is what its drafter reads: the packed texts of a training give the laws of a draft."""

import copy

import pytest
import torch

from engine.core.sampling import Sampling
from engine.methods.flash_mm.latent_reader import LatentReader
from engine.methods.flash_mm.part import LatentCell, LatentSizes
from engine.methods.shared.picture_cell import PictureCell
from engine.model.captions import CaptionsForCausalLM
from engine.parts.opening import language_model
from engine.training import caption_parts
from engine.training.caption_family import HEADS, states_of
from engine.training.caption_parts import flash_features, flash_loss, msd_loss, new_latent_cell
from engine.training.caption_text import IGNORED, Talks, caption_words, captions_config
from engine.training.cell_training import eagle_config, new_cell

SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}


@pytest.fixture(scope="module")
def target():
    torch.manual_seed(0)
    config = captions_config(len(caption_words()), **SHAPE, **HEADS, patch_width=16)
    return CaptionsForCausalLM(config).eval().requires_grad_(False)


@pytest.fixture(params=[False, True], ids=["picture", "film"])
def batch(request):
    return Talks(caption_words()).batch(3, 2, film=request.param)


@pytest.fixture
def cell():
    torch.manual_seed(1)
    return LatentCell(LatentSizes(32, 4, 2, 8)).eval().requires_grad_(False)


def test_a_packed_text_has_the_laws_of_a_draft(monkeypatch, target, batch, cell):
    monkeypatch.setattr(caption_parts, "NOISE", 0.0)
    features, _, embedded, states = caption_parts._taught(target, batch)
    made = flash_features(cell, batch, features, embedded, states)[1]
    laws = target.lm_head(made).softmax(-1)
    patches = batch.patches.shape[1]
    model = language_model(copy.deepcopy(target), None, "tiny", lean=False)
    rows = target.rows(batch.tokens[1:, :patches], batch.patches[1:])[0]
    for text in (1, 2):
        own = (batch.texts[1] == text).nonzero()[:, 0]
        context = [*batch.tokens[1, :patches].tolist(), *batch.tokens[1, own].tolist()]
        seen = model.with_rows(rows)
        reader = LatentReader(cell, seen, Sampling(1.0), patches)
        known = 0
        for cut in (patches + 3, len(context)):  # the text comes in two pieces
            read = torch.cat([features[1, :patches], features[1, own]])[known : cut - 1]
            known += len(read)
            reader.learn(read)
            tokens, drafted = reader.next_tokens(context[:cut], 5, lambda laws: False)
            torch.testing.assert_close(
                drafted, laws[own[cut - 1 - patches] - patches], atol=1e-5, rtol=1e-4
            )
            assert tokens == drafted.argmax(-1).tolist()


def test_true_features_miss_nothing(monkeypatch, target, batch, cell):
    """Then the loss is a tenth of the entropy of the target's laws; features of another place cost more."""
    features = states_of(target, batch)
    patches, law = batch.patches.shape[1], target.lm_head(features).softmax(-1)
    rows = features[:, patches:]

    def told(shift: int):
        made = torch.stack([rows.roll(-ahead - shift, 1) for ahead in range(5)], 2)
        monkeypatch.setattr(caption_parts, "flash_features", lambda *given: made)
        return float(flash_loss(cell, target, batch))

    entropy, least = -(law * law.log()).sum(-1), 0.0
    for ahead in range(5):
        same = (
            batch.texts[:, patches + ahead :]
            == batch.texts[:, patches : batch.texts.shape[1] - ahead]
        )
        counted = (batch.labels[:, patches + ahead :] != IGNORED) & same
        least += 0.1 * float(entropy[:, patches + ahead :][counted].mean())
    assert told(0) == pytest.approx(least, rel=1e-4)
    assert told(1) > 1.01 * least


def test_without_the_picture_the_loss_does_not_depend_on_its_rows(target, batch):
    """The first stage of MSD: the cell reads text alone."""
    cell = PictureCell.of(new_cell(eagle_config(target.config, "eagle"), target))

    def losses(seen: bool, shift: float) -> float:
        torch.manual_seed(0)
        usual = target.rows
        target.rows = lambda tokens, patches: usual(tokens, patches + shift * (calls.pop() == 2))
        calls = [2, 1]  # the target sees the picture as it is, the cell another one
        try:
            return float(msd_loss(cell, target, batch, seen).detach())
        finally:
            del target.rows

    assert losses(False, 20.0) == pytest.approx(losses(False, 0.0), rel=1e-6)
    assert losses(True, 20.0) != pytest.approx(losses(True, 0.0), rel=1e-4)


def test_a_new_cell_begins_with_the_targets_feature(target):
    cell = new_latent_cell(target)
    assert torch.equal(cell.fc.weight[:, 32:], torch.eye(32))
    assert not cell.down.weight.any()
