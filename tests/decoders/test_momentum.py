"""Momentum decoding: the same text whatever is drafted, that of a plain script."""

import copy

import pytest
import torch

from engine.rules import verifier
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import tiny_models

PROMPT, COUNT = (3, 5, 7, 3, 5), 40
MODELS = tiny_models(16)
MODULE = copy.deepcopy(MODELS.target.model)
MODULE.set_attn_implementation("sdpa")


def written(key, alpha=0.2, candidates=5, **options):
    rule = verifier("momentum", {"alpha": alpha, "candidates": candidates})
    steps = steps_of(MODELS, key, PROMPT, COUNT, rule=rule, **options)
    return text_of(steps), len(steps)


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


def test_without_resistance_it_is_greedy_and_else_another_text_and_drafts_save_passes():
    greedy = text_of(steps_of(MODELS, "none", PROMPT, COUNT))
    assert written("chain", alpha=0.0)[0] == greedy
    text, steps = written("chain", length=4)
    assert text != greedy and steps < COUNT
