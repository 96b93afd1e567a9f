"""Momentum decoding: the same text whatever is drafted, that of a plain script."""

import copy

import pytest
import torch

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.rules import verifier
from tests.verifiers.tiny import tiny_models

PROMPT, COUNT = (3, 5, 7, 3, 5), 40
MODELS = tiny_models(16)
MODULE = copy.deepcopy(MODELS.target.model)
MODULE.set_attn_implementation("sdpa")


def written(key, alpha=0.2, candidates=5, **options):
    cls = drafters()[key]
    made = cls.build(resolve(key, cls.options, {**cls.trial, **options}), MODELS)
    rule = verifier("momentum", {"alpha": alpha, "candidates": candidates})
    request = TextRequest(made, rule, Sampling(), PROMPT, COUNT)
    steps = list(run_loop(MODELS.target, request))
    return [token for step in steps for token in step.output], len(steps)


def reference(alpha=0.2, candidates=5):
    """The graph, searched anew at every token."""
    text = list(PROMPT)
    for _ in range(COUNT):
        with torch.no_grad():
            p = MODULE(torch.tensor([text])).logits[0, -1].softmax(-1)
        scores = {}
        for token in p.topk(candidates).indices.tolist():
            depth = 0
            for length in range(1, 6):
                run = [*text, token][-length:]
                starts = range(len(text) - length + 1)
                if len(run) == length and any(text[at : at + length] == run for at in starts):
                    depth = length
            scores[token] = float(p[token]) - alpha * depth
        text.append(max(scores, key=scores.get))
    return text[len(PROMPT) :]


@pytest.mark.parametrize(
    "key", ["none", "chain", "dyspec", "multi_chain", "prompt_lookup", "jacobi"]
)
def test_the_text_is_that_of_the_plain_script(key):
    assert written(key)[0] == reference()


def test_it_is_another_text_than_the_greedy_one_and_drafts_save_passes():
    cls = drafters()["none"]
    request = TextRequest(cls({}), verifier("greedy"), Sampling(), PROMPT, COUNT)
    greedy = [token for step in run_loop(MODELS.target, request) for token in step.output]
    text, steps = written("chain", length=4)
    assert text != greedy and steps < COUNT


def test_without_resistance_it_is_greedy():
    cls = drafters()["none"]
    request = TextRequest(cls({}), verifier("greedy"), Sampling(), PROMPT, COUNT)
    greedy = [token for step in run_loop(MODELS.target, request) for token in step.output]
    assert written("chain", alpha=0.0)[0] == greedy
