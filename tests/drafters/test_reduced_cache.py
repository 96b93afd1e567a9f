"""Texts written from a part of the cache, unchecked: what every token sees, and that they are called lossy."""

import json

import pytest
import torch

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.reduced_cache.drafter import ReducedCacheDrafter
from engine.methods.shared.part_of_cache import SELECTORS
from engine.parts.loading import Models, load_models
from engine.parts.opening import language_model
from engine.run import open_run
from presets import family
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.family import request
from tests.engine.tiny import CONFIGS, tiny_hf_model

KEY = "reduced_cache"
PROMPT = [(7 * place + place // 5) % 61 for place in range(40)]


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_every_token_sees_its_part_and_nothing_else(architecture, lean):
    """Beside the module itself, with eager attention and a row of the mask for each token that was written."""
    module = tiny_hf_model(architecture, layer_types=["full_attention"] * 3)
    models = Models(language_model(module, None, "tiny", lean=lean))
    options = {"selector": "streaming", "budget": 6, "sinks": 2}
    steps = steps_of(models, KEY, PROMPT, 14, Sampling(1.0, seed=3), **options)
    text = [*PROMPT, *text_of(steps)][:-1]
    module.set_attn_implementation("eager")
    seen = torch.ones(len(text), len(text)).tril().bool()
    whole = laws(module, text, seen)
    for row in range(len(PROMPT) - 1, len(text)):
        seen[row, 2 : row - 4] = False
    found = torch.stack([step.tree.laws[0] for step in steps])
    assert torch.allclose(found, laws(module, text, seen), atol=1e-4)
    assert (found - whole).abs().max() > 0.01, "so it is lossy"
    assert all(step.p is None and step.final is None for step in steps), "nobody checks"


def laws(module, text, seen):
    """Return p [14, V] of the last tokens, where each row sees the columns that are true in ``seen``."""
    mask = torch.zeros(1, 1, *seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    logits = module(torch.tensor([text]), attention_mask=mask).logits
    return logits[0, -14:].detach().softmax(-1)


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_a_part_that_holds_the_whole_text_writes_what_the_target_writes(architecture):
    models = Models(language_model(tiny_hf_model(architecture), None, "tiny", lean=False))
    plain = text_of(steps_of(models, "none", PROMPT, 20))
    steps = steps_of(models, KEY, PROMPT, 20, selector="lserve", budget=900)
    assert text_of(steps) == plain


@pytest.fixture(scope="module")
def embedded():
    """Return the embedded models and a prompt."""
    models = load_models(family(), ReducedCacheDrafter.may_use(), "float32", "cpu")
    return models, models.target.tokenizer("The dog saw a red boat. " * 20).input_ids


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_writes_from_an_eighth(embedded, selector):
    models, prompt = embedded
    steps = steps_of(models, KEY, prompt, 12, selector=selector, budget=0, sinks=4)
    assert len(text_of(steps)) == 12
    gauge = steps[0].tree.exhibits[0]
    assert gauge.value < 0.6 and "missing from the answer" in gauge.note


def test_with_a_budget_for_all_the_text_is_the_embedded_target_s(embedded):
    models, prompt = embedded
    whole = steps_of(models, KEY, prompt, 12, selector="streaming", budget=4000)
    assert text_of(whole) == text_of(steps_of(models, "none", prompt, 12))


def test_it_is_called_lossy_with_every_rule():
    run = open_run(request("Once upon a time", drafter=KEY, max_new_tokens=4))
    said = json.loads(run.header())["verifier"]
    assert not said["lossless"] and not said["same_text"]
    lines = [json.loads(line) for line in run.steps()]
    assert all(line["output"]["final"] == "none" for line in lines)


def test_mistakes_are_told_in_one_sentence():
    hybrid = load_models(family("hybrid"), {}, "float32", "cpu")
    with pytest.raises(UserError, match="cannot read a part of its cache"):
        built(ReducedCacheDrafter, hybrid)
    with pytest.raises(UserError, match="A budget of 3 columns has no room"):
        built(ReducedCacheDrafter, load_models(family(), {}), budget=3, sinks=3)
