"""Drafts of one pass over masks: P-EAGLE and PARD compute what plain passes compute, and keep no mask."""

import copy

import pytest
import torch
from torch import nn

from engine.core.sampling import Sampling, display_distribution
from engine.errors import UserError
from engine.methods.eagle.part import KIND as EAGLE
from engine.methods.parallel_eagle.part import KIND
from engine.methods.pard.part import KIND as PARD
from engine.methods.shared.eagle_reader import EagleReader
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import built, steps_of
from tests.engine.eagle_cells import TARGET, H, V, checkpoint, eagle, peagle, tensors_of
from tests.engine.tiny import tiny_hf_model, tiny_model

PROMPT, MASK, COUNT = [3, 14, 15, 9, 2, 6], 7, 4


@pytest.fixture(scope="module")
def target():
    return tiny_model("llama", num_hidden_layers=TARGET["num_hidden_layers"])


@pytest.fixture
def folder(tmp_path):
    config, shapes = peagle()
    return checkpoint(tmp_path / "cell", config, tensors_of(shapes))


def load(kind, folder, target):
    return kind.load(str(folder), target, torch.float32, "cpu")


def plainly(cell, features, tokens):
    """Return q [COUNT, V] after the text, by one causal pass over all pairs and three masks."""
    rows = len(tokens) - 1 + COUNT - 1
    blank = cell.mask_hidden[0].expand(rows - len(features), -1)
    states = torch.cat([features, blank]) @ cell.fc.weight.T
    embedded = cell.embed_tokens(torch.tensor([*tokens[1:], *[MASK] * (COUNT - 1)]))

    def attend(_, *parts):
        parts = (part[None] for part in parts)
        return nn.functional.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)[
            0
        ]

    found = cell(states, embedded, cell.turn(torch.arange(rows)), attend)[-COUNT:]
    logits = cell.norm(found) @ cell.lm_head.weight.T
    return cell.spread(logits, V).softmax(-1)


@torch.no_grad()
def test_one_pass_of_the_cell_gives_the_laws_of_all_tokens(folder, target):
    """Step after step; and forced tokens, which the target has not read, stand on the mask's feature."""
    cell = load(KIND, folder, target)
    reader, text = EagleReader(cell, target, Sampling(1.0)), [3, 14, 15]
    features = torch.randn(12, 3 * H)
    reader.learn(features[:2])
    for more, known in (([], 2), ([9, 2], 4), ([6], 5), ([5, 8, 1], 6)):
        text += more
        reader.learn(features[reader._known : known])
        expected = plainly(cell, features[:known], text)
        torch.testing.assert_close(reader.at_once(text, COUNT), expected, atol=1e-5, rtol=1e-4)
    assert reader.passes == 4


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, seed=2)])
def test_a_step_takes_one_pass(target, sampling):
    for key in ("parallel_eagle", "pard"):
        kind = {"parallel_eagle": KIND, "pard": PARD}[key]
        models = Models(target, {key: kind.tiny(target, lambda made: opened(made))})
        made = built(key, models)
        steps = steps_of(models, made, PROMPT, 16, sampling)
        assert made.passes() == {key: sum(bool(len(step.tree)) for step in steps)}


def opened(module):
    return language_model(module, None, "tiny", lean=False)


@torch.no_grad()
def test_masks_behind_the_text_are_those_of_a_plain_pass(target):
    module = tiny_hf_model("llama", num_hidden_layers=TARGET["num_hidden_layers"], seed=3)
    module.config.pard_token = MASK
    models = Models(target, {"pard": opened(copy.deepcopy(module))})
    made = built("pard", models, length=COUNT)
    steps = steps_of(models, made, PROMPT, 16, Sampling(1.0, seed=1))
    text = list(PROMPT)
    for step in steps:
        if len(step.tree) == COUNT:
            rows = torch.tensor([[*text, *[MASK] * (COUNT - 1)]])
            logits = module(input_ids=rows).logits[0, -COUNT:]
            expected = display_distribution(logits, Sampling(1.0))
            torch.testing.assert_close(torch.stack(step.tree.laws), expected, atol=1e-4, rtol=1e-3)
        text += step.output


def test_parts_without_masks_are_refused_in_a_sentence(folder, tmp_path, target):
    config, shapes = eagle()
    plain = checkpoint(tmp_path / "plain", config, tensors_of(shapes))
    with pytest.raises(UserError, match="plain has no mask_hidden"):
        load(KIND, plain, target)
    with pytest.raises(UserError, match="parallel_eagle does that"):
        load(EAGLE, folder, target)
    tensors = {**tensors_of(shapes), "mask_hidden": torch.zeros(1, 1, H)}
    unnamed = checkpoint(tmp_path / "unnamed", config, tensors)
    with pytest.raises(UserError, match=r"does not say which token that is \(mask_token_id\)"):
        load(KIND, unnamed, target)
    named = checkpoint(tmp_path / "named", {**config, "pard_token": MASK}, tensors)
    assert load(KIND, named, target).config.mask_token == MASK


def test_a_draft_model_without_a_mask_is_refused(target):
    module = copy.deepcopy(target.model)
    models = Models(target, {"pard": opened(module)})
    with pytest.raises(UserError, match="names no mask token"):
        steps_of(models, "pard", PROMPT, 4)
    module.config.pard_token = 1 << 20
    with pytest.raises(UserError, match="masks with the token"):
        steps_of(models, "pard", PROMPT, 4)
