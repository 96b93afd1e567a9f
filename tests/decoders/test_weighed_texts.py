"""Texts weighed by p / q and by the constraint: every outcome enumerated, on a target and a draft that are tables."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import jsonschema
import pytest
import torch

from engine.core.chance import Chance
from engine.core.sampling import Sampling
from engine.core.searching import searching
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.methods.awrs import drafter as weighed
from engine.methods.awrs.allowed_draw import draw_allowed
from engine.methods.awrs.drafter import AwrsDrafter
from engine.methods.awrs.particles import Particle, log_mean, resampled, shares_of
from engine.parts.loading import Models
from engine.proof.aligned_figures import Letters
from engine.proof.enumeration import OracleDraftChance, OracleJudgeChance, branches
from engine.proof.listed_texts import Listed, apart
from engine.rules import verifier
from tests.drafters.writing import usual
from tests.engine.family import trace_of
from tests.verifiers.test_awrs import SCHEMA

PROMPT, WHOLE = (3,), Sampling(1.0)
NEAR = 1e-6  # a law is in fp32
VALID = [(1, 1), (2, 1), (2, 2)]
END, A, B = 0, 1, 2
P = {(): {A: "3/4", B: "1/4"}, (A,): {A: "1/4", B: "3/4"}, (B,): {A: "1/2", B: "1/2"}}
P |= {
    (A, A): {END: "3/4", A: "1/4"},
    (B, A): {END: "1/4", A: "3/4"},
    (B, B): {END: "1/2", A: "1/2"},
}
Q = {(): {A: "1/2", B: "1/2"}, (A,): {A: "3/4", B: "1/4"}, (B,): {A: "1/4", B: "3/4"}}
Q |= {
    (A, A): {END: "1/4", A: "3/4"},
    (B, A): {END: "1/2", A: "1/2"},
    (B, B): {END: "3/4", A: "1/4"},
}
"""After each text, the chances of the next token. Behind "ab" no valid text can be written, and the constraint says so at once."""


class Table(Letters):
    asynchronous = False

    def __init__(self, table):
        self.table = table

    def row(self, text, features):
        law = torch.zeros(len(PROMPT) + 3)
        for token, chance in self.table.get(tuple(text[len(PROMPT) :]), {END: "1"}).items():
            law[token] = float(Fraction(chance))
        return law.log(), None


def chance_of(table, text):
    whole = Fraction(1)
    for place, token in enumerate(text):
        whole *= Fraction(table[text[:place]][token])
    return whole


TEXTS = [(*text, END) for text in VALID]
TRUTH = {text: chance_of(P, text) for text in TEXTS}
GLOBAL = {text: float(p / sum(TRUTH.values())) for text, p in TRUTH.items()}


def every_outcome(texts, length, held=True):
    """Enumerate all outcomes. Returns (the law of the answer, the mean of each text's weight over all texts, the chance
    of a resampling)."""
    models = Models(Table(P), {"draft": Table(Q)})
    answers, means, again = {}, {}, 0.0

    def program(oracle):
        made = usual(AwrsDrafter, models, texts=texts, length=length)
        chance = Chance(OracleDraftChance(oracle), OracleJudgeChance(oracle, verifier("greedy")))
        held_to = Listed(VALID, 4) if held else None
        request = TextRequest(
            made, verifier("rejection"), Sampling(1.0), PROMPT, 8, constraint=held_to, chance=chance
        )
        text = tuple(token for step in searching(models.target, request) for token in step.output)
        return text, made

    for (text, made), oracle in branches(program):
        answers[text] = answers.get(text, 0.0) + oracle.weight
        again += oracle.weight * (made.resampled > 0)
        for one in made.particles:
            mean = oracle.weight * math.exp(one.log_weight) / texts
            means[one.path] = means.get(one.path, 0.0) + mean
    return answers, means, again


def off(means):
    """Return the largest difference between a mean weight and the target's probability of its text."""
    return max(abs(means.get(text, 0.0) - float(p)) for text, p in TRUTH.items())


OFTEN = 0.95
"""Two texts are resampled as soon as one has much more weight than the other."""
CASES = [(1, 0), (1, 1), (1, 2), (1, 4), (2, 0), (2, 1)]


@pytest.mark.parametrize("texts, length", CASES)
def test_the_mean_weight_of_each_text_is_the_targets_probability_of_it(monkeypatch, texts, length):
    """And so the mean of all weights is the probability of a valid text; with resampling as well."""
    monkeypatch.setattr(weighed, "LEAST", OFTEN)
    answers, means, again = every_outcome(texts, length)
    assert set(means) >= set(TEXTS) and sum(answers.values()) == pytest.approx(1)
    assert off(means) < NEAR
    assert sum(means.values()) == pytest.approx(float(sum(TRUTH.values())), abs=NEAR)
    assert (again > 0) == (texts > 1), "resampling must be part of what is enumerated"


def test_without_a_constraint_the_mean_weights_are_the_targets_law():
    _, means, _ = every_outcome(1, 2, held=False)
    assert off(means) < NEAR and sum(means.values()) == pytest.approx(1, abs=NEAR)


@pytest.mark.parametrize(
    "ratio", [lambda p, q, token: 1.0, lambda p, q, token: float(q[token] / p[token])]
)
def test_a_ratio_that_is_left_out_or_upside_down_is_caught(monkeypatch, ratio):
    monkeypatch.setattr(weighed, "ratio", ratio)
    assert off(every_outcome(1, 2)[1]) > 0.01


def test_a_place_without_the_one_token_more_is_caught(monkeypatch):
    def one_less(law, *asked):
        found = draw_allowed(law, *asked)
        drawn = [token for token, _ in found.tokens]
        return replace(found, weight=1 - float(law[drawn[: drawn.index(found.token)]].sum()))

    monkeypatch.setattr(weighed, "draw_allowed", one_less)
    assert off(every_outcome(1, 1)[1]) > 0.01


def test_texts_that_keep_their_own_weights_when_resampled_are_caught(monkeypatch):
    def kept(particles, choose):
        before = {one.path: one.log_weight for one in particles}
        return [Particle(one.path, before[one.path]) for one in resampled(particles, choose)]

    monkeypatch.setattr(weighed, "LEAST", OFTEN)
    monkeypatch.setattr(weighed, "resampled", kept)
    assert off(every_outcome(2, 1)[1]) > 0.01


def test_the_answer_nears_the_targets_own_law_of_valid_texts():
    """One text has the draft's law, cut to what is allowed; two are nearer."""
    alone, pair = every_outcome(1, 4)[0], every_outcome(2, 1)[0]
    cut = {(1, 1, 0): 1 / 2, (2, 1, 0): 1 / 8, (2, 2, 0): 3 / 8}
    assert apart(alone, cut) < NEAR
    assert apart(pair, GLOBAL) < 0.9 * apart(cut, GLOBAL)


@pytest.mark.parametrize("logs", [[0.0, -1.0, -2.0, -math.inf], [-700.0, -701.0], [0.0] * 3])
def test_resampling_takes_each_text_as_often_as_its_weight_says(logs):
    particles = [Particle((place,), log) for place, log in enumerate(logs)]
    counts = torch.zeros(len(logs), dtype=torch.float64)
    for found, oracle in branches(lambda oracle: resampled(particles, oracle.choose)):
        assert log_mean(found) == pytest.approx(log_mean(particles))
        for one in found:
            counts[one.path[0]] += oracle.weight
    assert torch.allclose(counts, shares_of(particles) * len(logs), atol=1e-9)


# ---- Bad input ------------------------------------------------------------------------------------


def written(models, constraint, sampling=WHOLE, **options):
    made = usual(AwrsDrafter, models, **options)
    request = TextRequest(made, verifier("rejection"), sampling, PROMPT, 8, constraint=constraint)
    return list(searching(models.target, request)), made


def test_a_draft_that_can_never_draw_what_the_target_would_is_one_sentence():
    narrow = Q | {(B,): {A: "1"}}
    models = Models(Table(P), {"draft": Table(narrow)})
    with pytest.raises(UserError, match="^The draft model can never draw .* Set Length to 0"):
        for _ in range(20):
            written(models, Listed([(2, 1), (2, 2)], 4), texts=4)


def test_texts_that_all_die_are_one_sentence():
    models = Models(Table(P | {(): {3: "1"}}), {})
    with pytest.raises(UserError, match="^All 3 texts died: .*[.]$"):
        written(models, Listed(VALID, 4), texts=3)


def test_without_a_draft_model_and_where_p_is_cut_the_target_draws_all():
    cut, drafted = Sampling(1.0, top_p=0.9), {"draft": Table(Q)}
    for parts, more in (({}, {}), (drafted, {"length": 0}), (drafted, {"sampling": cut})):
        _, made = written(Models(Table(P), parts), Listed(VALID, 4), texts=3, **more)
        assert "draft" not in made.passes() and made.passes()["target"] == 3


# ---- A JSON schema, on the embedded models ----------------------------------------------------


@pytest.mark.parametrize("length", [0, 4])
def test_a_schema_asks_about_a_tenth_of_the_vocabulary_at_most(length):
    """And one pass reads the drafted tokens of all texts and adds one to each."""
    run = trace_of(
        "Write 3 JSON records with id, name, colour.\n",
        drafter="awrs",
        options={"texts": 4, "length": length},
        json_schema=json.dumps(SCHEMA),
        temperature=0.8,
        max_new_tokens=40,
    )
    jsonschema.validate(json.loads(run.summary["text"].removesuffix("<|endoftext|>")), SCHEMA)
    assert run.run["verifier"]["law"] == "weighed texts"
    gauge = run.steps[-1]["drafter"]["exhibits"][-1]
    assert gauge["value"] <= 0.1 * run.run["target"]["vocab_size"]
    assert run.summary["target_calls"] <= math.ceil(40 / (length + 1))
