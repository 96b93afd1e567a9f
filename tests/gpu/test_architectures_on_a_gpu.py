"""Tiny models of every architecture: captured passes on a GPU against the module's own passes on the CPU."""

import copy

import pytest
import torch

from engine.core.sampling import Sampling
from engine.methods.chain.drafter import ChainDrafter
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.engine.test_unrecorded import Wide
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model
from tests.engine.unrecorded import RULES, steps_of, texts

PROMPT = list(range(2, 20))
TREE = {"budget": 12, "depth": 4, "width": 3, "sharpness": 2.0, "stop_below": 0.0}


def drafters(model):
    yield Wide({})
    yield ChainDrafter({"length": 3, "stop_below": 0.0}, model, VOCABULARY)
    yield DySpecDrafter(TREE, model, VOCABULARY)


def models_of(architecture: str):
    """Return (the model on the CPU through its module, the model on the GPU)."""
    plain = language_model(tiny_hf_model(architecture), None, "cpu", lean=False, static=False)
    return plain, language_model(tiny_hf_model(architecture).to("cuda"), None, "gpu")


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_the_text_is_that_of_a_cpu(architecture):
    plain, captured = models_of(architecture)
    for rule, sampling in RULES:
        for one, other in zip(drafters(plain), drafters(captured), strict=True):
            expected = steps_of(Models(plain), one, rule, sampling, True, PROMPT)
            for recorded in (True, False):
                found = steps_of(Models(captured), other, rule, sampling, recorded, PROMPT)
                assert texts(found) == texts(expected), (rule, sampling, type(other), recorded)


ROUNDED = {torch.bfloat16: 0.05, torch.float16: 0.006}
"""The largest error of the logits, relative to their norm: some hundred roundings of 2^-9 and 2^-12."""


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
@pytest.mark.parametrize("dtype", ROUNDED)
def test_half_precision_stays_within_its_rounding(architecture, dtype):
    """A tree after a prompt, against the CPU in fp32 with the same rounded weights; then a whole run."""
    module = tiny_hf_model(architecture).to(dtype)
    exact = language_model(copy.deepcopy(module).float(), None, "cpu", lean=False, static=False)
    model = language_model(module.to("cuda"), None, "gpu")
    found, expected = (logits_of_a_tree(one) for one in (model, exact))
    assert float((found - expected).norm() / expected.norm()) < ROUNDED[dtype]
    for drafter in drafters(model):
        steps = steps_of(Models(model), drafter, "greedy", Sampling(), False, PROMPT)
        assert sum(map(len, texts(steps))) == 30


def logits_of_a_tree(model) -> torch.Tensor:
    session = model.session(64)
    session.prefill(PROMPT)
    logits, _ = session.feed([1, 2, 3, 4, 5, 6], [-1, 0, 0, 1, 2, 4])
    return logits.float().cpu()


def test_texts_of_many_lengths_capture_and_end_graphs():
    """Buffer sets come and go, graphs are retired and captured again; every text stays right."""
    plain, captured = models_of("llama")
    for length in (3, 60, 5, 90, 20, 4):
        prompt = [(7 * place) % VOCABULARY for place in range(length)]
        for one, other in zip(drafters(plain), drafters(captured), strict=True):
            expected = steps_of(Models(plain), one, "greedy", Sampling(), True, prompt, 20)
            found = steps_of(Models(captured), other, "greedy", Sampling(), False, prompt, 20)
            assert texts(found) == texts(expected)
        captured.buffer_sets.recorder.end_all()
