"""Superposed chains and texts, beside a plain script that reads the mixtures from their beginning."""

import copy
import math
from collections import Counter

import pytest
import torch

from engine.methods.shared.datastore_part import Datastore
from engine.methods.shared.superposition import FLOOR, SHARES
from engine.parts.loading import Models
from tests.drafters.writing import steps_of, text_of, usual
from tests.verifiers.tiny import tiny_models

PROMPT = (3, 5, 7, 3, 5)
TINY = tiny_models(16)
TOKENS = torch.randint(0, 12, (400,), generator=torch.Generator().manual_seed(4)).tolist()
MODELS = Models(TINY.target, {**TINY.parts, "datastore": Datastore(TOKENS)})


def ngrams(text):
    """Return the mixture of the n-gram orders whose contexts the datastore holds. Every continuation counts, because
    there are few."""
    mixed, whole = Counter(), 0.0
    for order, share in SHARES.items():
        end = text[len(text) - order + 1 :]
        places = range(len(TOKENS) - order + 1)
        follow = Counter(TOKENS[p + order - 1] for p in places if TOKENS[p : p + order - 1] == end)
        if follow and len(end) == order - 1:
            whole += share
            for token, count in follow.items():
                mixed[token] += share * count / follow.total()
    return {token: value / whole for token, value in mixed.items()} if whole else {}


@torch.no_grad()
def levels(model, prompt, texts, candidates, mixture, length):
    """Return all texts of each level."""
    module = copy.deepcopy(model.model)
    module.set_attn_implementation("sdpa")
    table = module.get_input_embeddings().weight
    inputs = table[torch.tensor(prompt)]
    found, kept = [], [((), 0.0)]
    for level in range(length):
        p = module(inputs_embeds=inputs[None]).logits[0, -1].softmax(-1)
        grown = []
        for path, score in kept:
            known = ngrams([*prompt, *path])
            for token in p.topk(texts if level == 0 else candidates).indices.tolist():
                own = math.log(p[token])
                fits = math.log(max(FLOOR, known.get(token, 0.0)))
                more = own if level == 0 else (1 - mixture) * own + mixture * fits
                grown.append(((*path, token), score + more))
        kept = sorted(grown, key=lambda one: -one[1])[:texts]
        found.append([path for path, _ in kept])
        weights = torch.tensor([score for _, score in kept]).softmax(-1)
        lasts = table[torch.tensor([path[-1] for path, _ in kept])]
        inputs = torch.cat([inputs, (weights @ lasts)[None]])
    return found


@pytest.mark.parametrize("texts, mixture", [(1, 0.54), (2, 0.0), (3, 0.54), (3, 0.9)])
def test_the_chains_are_those_of_the_plain_script(texts, mixture):
    options = {"texts": texts, "candidates": 6, "mixture": mixture}
    step = steps_of(MODELS, usual("superposed", MODELS, length=4, **options), PROMPT, 20)[0]
    tree = step.tree
    paths = {tuple(tree.tokens[n] for n in tree.path(node)) for node in range(len(tree))}
    expected = levels(MODELS.part("draft"), PROMPT, **options, length=4)
    assert paths == {path for level in expected for path in level}
    assert step.passes["draft"] == 4


def test_the_texts_are_those_of_the_plain_script():
    options = {"texts": 3, "candidates": 6, "mixture": 0.54}
    drafter = usual("superposed_texts", MODELS, **options)
    steps = steps_of(MODELS, drafter, PROMPT, 6)
    expected = levels(MODELS.target, PROMPT, **options, length=6)[-1]
    assert [one.path for one in drafter.candidates] == expected
    assert tuple(text_of(steps)) == expected[0]
    assert sum(step.passes["target"] for step in steps) == 6, "one pass a token, for all texts"
