"""AWRS draws from masked decoding without a mask, and its weights have the right mean."""

import json
import math
from dataclasses import replace

import pytest
import torch

from engine.core.bound import Bound
from engine.core.memory import Memory
from engine.core.rule import Case
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.tree import DraftTree
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.awrs import rule as awrs
from engine.methods.awrs.particles import Writing, write
from engine.methods.awrs.rule import Awrs, Died
from engine.methods.none.drafter import NoDrafter
from engine.proof.enumeration import OracleJudgeChance, branches
from engine.proof.listed_texts import Laws, Listed, apart
from engine.proof.memo import remembering
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.family import trace_of
from tests.verifiers.tiny import tiny_models

EXACT = 1e-9
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


def laws_of_a_place(p, tokens, test=awrs.test):
    """The law of the token, and the mean of the weight of each token times its probability, enumerated."""
    law, weighed = [0.0] * len(p), [0.0] * len(p)

    def program(oracle):
        chance = OracleJudgeChance(oracle, Awrs())
        case = Case(DraftTree(), p[None], p[None].log(), Sampling(1.0), 0, chance)
        bound = Bound(Among(tokens, len(p)), p[None].log(), (), (), "toy", Memory())
        return test(case, bound, p, (), 0)

    for found, oracle in branches(program):
        law[found.token] += oracle.weight
        weighed[found.token] += oracle.weight * found.weight
    return torch.tensor(law), torch.tensor(weighed)


P = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05], dtype=torch.float64)


def one_less(case, bound, p, path, position):
    """The fault of stopping at the first allowed token."""
    found = awrs.test(case, bound, p, path, position)
    refused = [token for token, allowed in found.tokens if not allowed and token != found.token]
    return replace(found, weight=1 - float(p[refused].sum()))


@pytest.mark.parametrize("most", [1, 2, 64])
@pytest.mark.parametrize("tokens", [(0,), (4,), (1, 3), (0, 2, 4), (0, 1, 2, 3, 4)])
def test_the_token_is_that_of_masked_decoding_and_the_weight_has_the_right_mean(
    monkeypatch, tokens, most
):
    """Also where the whole vocabulary is asked about after a few refusals."""
    monkeypatch.setattr(awrs, "MOST_REFUSED", most)
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
    return remembering(tiny_models(4, end_token=0))


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


def writing(models, key="chain", seed=0, texts=TEXTS):
    return Writing(
        models.target,
        lambda: built(drafters()[key], models),
        lambda: Listed(texts, 4),
        Sampling(1.0, seed=seed),
        PROMPT,
        8,
    )


RUNS = 150


def test_particles_near_the_targets_own_law(models):
    """The mean of all weights is the probability of a valid text, within four standard errors; a text drawn by its weight
    has the global law as the particles grow in number, not that of masked decoding."""
    laws = Laws(models.target, PROMPT, TEXTS)
    means, law = [], {}
    for seed in range(RUNS):
        found = write(writing(models, seed=seed), 8)
        weights = [math.exp(particle.log_weight) for particle in found]
        means.append(sum(weights) / len(weights))
        for particle, weight in zip(found, weights, strict=True):
            text = tuple(particle.tokens)
            law[text] = law.get(text, 0.0) + weight / sum(weights) / RUNS
    mean = sum(means) / RUNS
    error = (sum((one - mean) ** 2 for one in means) / RUNS / (RUNS - 1)) ** 0.5
    assert abs(mean - laws.valid()) < 4 * error
    assert error < 0.1 * laws.valid(), "this would not show a fault"
    assert apart(law, laws.whole()) < apart(law, laws.masked()) / 3


class Dies(Listed):
    """Allows only what the target cannot write."""

    def allowed(self, continuation):
        mask = super().allowed(continuation)
        return mask if mask is None or len((*self.text, *continuation)) < 1 else torch.zeros(4) > 0


def test_particles_that_all_die_are_told_in_one_sentence(models):
    dead = replace(writing(models), constraint=lambda: Dies(TEXTS, 4))
    with pytest.raises(UserError, match="^All 3 texts died: .*[.]$"):
        write(dead, 3)
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
