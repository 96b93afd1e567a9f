"""AWRS draws from masked decoding without a mask, and the weight of a place has the right mean."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.awrs import allowed_draw
from engine.methods.awrs.allowed_draw import Died
from engine.methods.awrs.rule import Awrs
from engine.methods.none.drafter import NoDrafter
from engine.proof.enumeration import branches
from engine.proof.listed_texts import Listed
from tests.drafters.writing import steps_of, text_of
from tests.engine.family import trace_of
from tests.verifiers.tiny import remembered_models

PROMPT = (1, 2, 0, 1, 2)
TEXTS = [(1, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)]


class Among(Listed):
    """Any of some tokens, everywhere."""

    def __init__(self, tokens, vocabulary):
        super().__init__([], vocabulary)
        self.mask = torch.zeros(vocabulary, dtype=torch.bool)
        self.mask[list(tokens)] = True

    def allowed(self, continuation):
        return self.mask


def laws_of_a_place(p, tokens, test=allowed_draw.draw_allowed):
    """Enumerate a place. Returns the law of its token, and for each token the mean of its weight times its
    probability."""
    law, weighed = [0.0] * len(p), [0.0] * len(p)
    among = Among(tokens, len(p))

    def program(oracle):
        return test(p, oracle.choose, partial(among.allows, ()), partial(among.allowed, ()))

    for found, oracle in branches(program):
        law[found.token] += oracle.weight
        weighed[found.token] += oracle.weight * found.weight
    return torch.tensor(law), torch.tensor(weighed)


P = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05], dtype=torch.float64)


def one_less(p, *asked):
    """A fault: the weight is that of a search that stops at the first allowed token."""
    found = allowed_draw.draw_allowed(p, *asked)
    refused = [token for token, allowed in found.tokens if not allowed and token != found.token]
    return replace(found, weight=1 - float(p[refused].sum()))


@pytest.mark.parametrize("most", [1, 2, 64])
@pytest.mark.parametrize("tokens", [(0,), (4,), (1, 3), (0, 2, 4), (0, 1, 2, 3, 4)])
def test_the_token_is_that_of_masked_decoding_and_the_weight_has_the_right_mean(
    monkeypatch, tokens, most
):
    """Also where the whole vocabulary is asked about after a few refusals."""
    monkeypatch.setattr(allowed_draw, "MOST_REFUSED", most)
    law, weighed = laws_of_a_place(P, tokens)
    mask = torch.zeros(5, dtype=torch.float64)
    mask[list(tokens)] = 1
    assert torch.allclose(law.double(), P * mask / (P * mask).sum(), atol=1e-6)
    assert torch.allclose(weighed.double(), P * mask, atol=1e-6)


def test_a_weight_that_leaves_out_the_last_test_is_caught():
    _, weighed = laws_of_a_place(P, (1, 3), one_less)
    assert abs(float(weighed.sum()) - 0.4) > 0.01


@pytest.fixture(scope="module")
def models():
    return remembered_models(4, 0)


@pytest.mark.parametrize("key", ["none", "chain", "rsd_s", "prompt_lookup"])
def test_the_text_is_that_of_masked_decoding_with_the_same_seed(models, key):
    texts = []
    for rule in ("sampler_match", "awrs"):
        for seed in range(12):
            sampling, allowed = Sampling(0.8, seed=seed), Listed(TEXTS, 4)
            steps = steps_of(models, key, PROMPT, 8, sampling, rule, constraint=allowed)
            texts.append(text_of(steps))
    assert texts[:12] == texts[12:]
    assert len({*map(tuple, texts)}) > 3


class Dies(Listed):
    """A constraint that allows only tokens that the target cannot write."""

    def allowed(self, continuation):
        mask = super().allowed(continuation)
        return mask if mask is None or len((*self.text, *continuation)) < 1 else torch.zeros(4) > 0


def test_a_text_that_dies_is_told_in_one_sentence(models):
    request = TextRequest(
        NoDrafter({}), Awrs(), Sampling(1.0), PROMPT, 8, constraint=Dies(TEXTS, 4)
    )
    with pytest.raises(Died, match="no token that the target could draw"):
        list(run_loop(models.target, request))


# ---- A JSON schema, on the embedded models ----------------------------------------------------

FIELDS = {
    "id": {"type": "integer", "minimum": 1, "maximum": 9},
    "name": {"type": "string", "maxLength": 12},
}
SCHEMA = {
    "type": "object",
    "properties": FIELDS,
    "required": [*FIELDS],
    "additionalProperties": False,
}


def run(rule, seed):
    return trace_of(
        "Write 3 JSON records with id, name, colour.\n",
        drafter="chain",
        verifier=rule,
        json_schema=json.dumps(SCHEMA),
        temperature=0.8,
        seed=seed,
        max_new_tokens=40,
    )


def test_a_schema_asks_about_a_tenth_of_the_vocabulary_at_most():
    shares = []
    for seed in range(3):
        tested = run("awrs", seed)
        assert tested.summary["text"] == run("sampler_match", seed).summary["text"]
        gauges = [
            one["value"] / tested.run["target"]["vocab_size"]
            for step in tested.steps
            for one in step["drafter"].get("exhibits", ())
            if one["kind"] == "gauge" and one["title"].startswith("Tokens tested")
        ]
        shares.append(gauges[-1])
    assert max(shares) <= 0.1
