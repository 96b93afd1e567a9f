"""EasySpec: what a fuzzy pass computes, that steps begin with the draft's true memory, and the errors that it shows."""

import copy

import pytest
import torch
from torch import nn

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.model.fuzzy import fuzzy, groups_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import begun
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of

PROMPT = [3, 5, 7, 3, 5]


@pytest.fixture(scope="module")
def models():
    draft = language_model(tiny_hf_model(seed=3), None, "draft")  # compiled, as on the page
    return Models(tiny_model(), {"draft": draft})


def by_hand(module, tokens, groups):
    """Return the logits of a whole text by a fuzzy pass, written out for a Llama."""
    ids = torch.tensor([tokens])
    states = module.model.embed_tokens(ids)
    places = torch.arange(len(tokens))[None]
    rotary = module.model.rotary_emb(states, places)
    mask = torch.full((len(tokens), len(tokens)), float("-inf")).triu(1)[None, None]
    for group in groups:
        added = [
            module.model.layers[one](states, attention_mask=mask, position_embeddings=rotary)
            - states
            for one in group
        ]
        states = states + sum(added)
    return module.lm_head(module.model.norm(states))[0]


@pytest.mark.parametrize(
    ("size", "groups"), [(2, [[0, 1], [2]]), (3, [[0, 1, 2]]), (1, [[0], [1], [2]])]
)
@torch.no_grad()
def test_a_group_adds_up_what_its_layers_make_of_one_input(size, groups):
    module = tiny_hf_model(seed=3).requires_grad_(False)
    plain = copy.deepcopy(module)
    plain.set_attn_implementation("eager")
    made = fuzzy(language_model(module, None, "draft", lean=False), size)
    assert made.groups == groups
    with made.together():
        found, _ = made.model.session(16).feed(PROMPT, range(-1, len(PROMPT) - 1))
    torch.testing.assert_close(found, by_hand(plain, PROMPT, groups), atol=1e-4, rtol=1e-3)
    exact, _ = made.model.session(16).feed(PROMPT, range(-1, len(PROMPT) - 1))
    truth = plain(torch.tensor([PROMPT])).logits[0]
    torch.testing.assert_close(exact, truth, atol=1e-4, rtol=1e-3)
    assert size == 1 or (found - exact).abs().max() > 0.01


def test_a_model_whose_rope_looks_at_the_length_is_grouped_too():
    """Outside of grouped passes its logits are those of the model."""
    whole = language_model(random_module(config_of("llama, longrope")), None, "long")
    tokens, parents = [3, 5, 7, 9], [-1, 0, 1, 1]
    grouped = fuzzy(whole, 2).model
    found, expected = (one.session(8).feed(tokens, parents)[0] for one in (grouped, whole))
    torch.testing.assert_close(found, expected)


def test_layers_that_answer_with_more_than_rows_are_refused():
    with pytest.raises(UserError, match="layers of bloom cannot"):
        fuzzy(language_model(random_module(config_of("bloom")), None, "bloom"), 2)


def test_layers_of_another_kind_begin_another_group():
    layers = [nn.Identity() for _ in range(5)]
    for layer, kind in zip(layers, ["a", "a", "a", "b", "a"], strict=True):
        layer.attention_type = kind
    assert groups_of(layers, 2) == [[0, 1], [2], [3], [4]]


def test_every_step_begins_with_the_true_memory(models):
    """The law of a draft's first token is the exact draft's, and the errors shown are those of the other tokens."""
    module = tiny_hf_model(seed=3).requires_grad_(False)
    options = {"length": 4, "group": 3, "stop_below": 0.0}
    text, checked, before = list(PROMPT), 0, None
    for step in begun(models, "easyspec", PROMPT, 40, Sampling(1.0, seed=4), **options):
        if len(step.tree):
            truth = module(torch.tensor([text])).logits[0].softmax(-1)
            torch.testing.assert_close(step.tree.laws[0], truth[-1], atol=1e-4, rtol=1e-3)
            shown = [one.to_dict(str) for one in step.tree.exhibits]
            if before is not None and before.verdict.accepted:
                laws, kept = before.tree.laws, len(before.verdict.accepted)
                known = min(kept, len(laws) - 1)
                rows = shown[1]["rows"] if known else []
                assert len(rows) == known
                first = len(text) - len(before.output)
                for place, row in enumerate(rows):
                    gap = 0.5 * float((laws[place + 1] - truth[first + place]).abs().sum())
                    assert row[1] == pytest.approx(gap, abs=2e-3) and gap > 0
                    checked += 1
        before = step
        text += step.output
    assert checked > 3
