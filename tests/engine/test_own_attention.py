"""Modules that mask, number or bias the rows of a pass by themselves."""

import copy

import pytest
import torch

from engine.batch.together import decode_together
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.model.layers import Layers
from engine.model.own_attention import ChainModel, MaskedModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.drafters.writing import steps_of, text_of, usual
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of

MASKED = ("bloom", "mpt", "codegen", "gptj", "xglm", "phimoe")
COUNTING = ("bart", "bigbird_pegasus", "mbart", "pegasus", "marian")
CHAINS = ("gpt_neo", "falcon, alibi", "llama4_text")

PREFIX = [(5 * place * place + place) % 89 + 1 for place in range(21)]
TREE, PARENTS = [3, 8, 11, 30, 5, 62, 17], [-1, 0, 0, 1, 1, 2, 3]


def alone(module, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return module(torch.tensor([tokens]), use_cache=False).logits[0, -1]


def path_to(row: int) -> list[int]:
    return [] if row < 0 else [*path_to(PARENTS[row]), TREE[row]]


@pytest.mark.parametrize("name", MASKED + COUNTING)
def test_tree_rows_equal_their_paths_read_alone(name):
    module = random_module(config_of(name))
    model = language_model(copy.deepcopy(module), None, name, lean=False)
    assert isinstance(model, MaskedModel) == (name in MASKED)
    session = model.session(4)
    session.prefill(PREFIX)
    logits, _ = session.feed(TREE, PARENTS)
    for row in range(len(TREE)):
        expected = alone(module, PREFIX + path_to(row))
        torch.testing.assert_close(logits[row], expected, atol=5e-5, rtol=1e-4)
    session.commit([0, 2, 5])
    found, _ = session.feed([9], [-1])
    expected = alone(module, PREFIX + path_to(5) + [9])
    torch.testing.assert_close(found[0], expected, atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize("name", COUNTING)
def test_without_positions_a_counting_module_counts(name):
    """The hooks do not change the module's own calls, even after a pass of the engine."""
    module = random_module(config_of(name))
    expected = alone(module, PREFIX)
    model = language_model(module, None, name, lean=False)
    attention = module.config._attn_implementation
    session = model.session(4)
    session.prefill(PREFIX)
    session.feed(TREE, PARENTS)
    module.set_attn_implementation("eager")
    torch.testing.assert_close(alone(module, PREFIX), expected, atol=5e-5, rtol=1e-4)
    module.set_attn_implementation(attention)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_read_and_trees_refused(name):
    module = random_module(config_of(name))
    model = language_model(copy.deepcopy(module), None, name, lean=False)
    assert isinstance(model, ChainModel)
    session = model.session(4)
    session.prefill(PREFIX)
    logits, _ = session.feed(TREE[:4], [-1, 0, 1, 2])
    for row in range(4):
        expected = alone(module, PREFIX + TREE[: row + 1])
        torch.testing.assert_close(logits[row], expected, atol=5e-5, rtol=1e-4)
    session.commit([0, 1])
    with pytest.raises(UserError, match="reads chains only"):
        session.feed(TREE, PARENTS)


@pytest.mark.parametrize("name", ["codegen", "gpt_neo"])
def test_passes_through_some_layers_are_refused(name):
    model = language_model(random_module(config_of(name)), None, name, lean=False)
    session = model.session(4)
    with pytest.raises(UserError, match="own layers"):
        session.through([1, 2], Layers(stop=1), [-1, 0])


@pytest.mark.parametrize("name", ["codegen", "bart"])
def test_features_of_own_attention(name):
    """Features are the module's hidden states."""
    module = random_module(config_of(name))
    with torch.no_grad():
        read = module(torch.tensor([PREFIX]), output_hidden_states=True, use_cache=False)
    expected = read.hidden_states[1][0]
    model = language_model(copy.deepcopy(module), None, name, lean=False)
    session = model.session(4, features=(1,))
    found = session.prefill(PREFIX)
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=1e-4)


def test_sampled_texts_on_own_attention_are_those_of_plain_decoding():
    model = language_model(random_module(config_of("bloom")), None, "bloom", lean=False)

    def written(key: str) -> list[int]:
        models, sampling = Models(model), Sampling(0.8, seed=4)
        made = usual(key, models)
        return text_of(steps_of(models, made, PREFIX, 20, sampling, "sampler_match"))

    assert written("prompt_lookup") == written("none")


def test_texts_that_share_passes_of_a_counting_module():
    """One pass is given the positions of several sequences."""
    model = language_model(random_module(config_of("bart")), None, "bart", lean=False)

    def request(prompt: list[int], key: str) -> TextRequest:
        made = usual(key, Models(model, {"draft": model}))
        return TextRequest(made, verifier("greedy"), Sampling(), prompt, 16)

    asked = [(PREFIX, "dyspec"), (PREFIX[:8], "prompt_lookup")]
    alone_written = [text_of(run_loop(model, request(*one))) for one in asked]
    together: list[list[int]] = [[], []]
    for index, step in decode_together(model, [request(*one) for one in asked]):
        together[index] += step.output
    assert together == alone_written
