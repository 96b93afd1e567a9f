"""Constrained runs keep the constrained target's law, and forced tokens cost no draft."""

import json
from functools import partial
from itertools import product

import pytest
import torch
from jsonschema import validate

from engine.chat.json_schema import JsonSchema
from engine.core.constraint import Constraint
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.opening import load_language_model
from engine.rules import verifier
from engine.run import RunRequest, open_run
from presets import family
from tests.drafters.writing import begun, built, steps_of, text_of, usual
from tests.engine.family import trace_of
from tests.grids import some
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

PROMPT = (1, 2, 0, 1, 2)
EXACT = 1e-5
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1, "maximum": 9},
            "name": {"enum": ["Tom", "Mia", "Ben"]},
            "colour": {"enum": ["red", "green", "blue"]},
        },
        "required": ["id", "name", "colour"],
        "additionalProperties": False,
    }
)
RECORD = "Write 3 JSON records with id, name, colour.\n"


class Grammar(Constraint):
    """After a 0 comes a 3, then a 1; a 2 never follows a 1."""

    def __init__(self):
        self.text, self.committed = (), 0

    def allowed(self, continuation):
        text = (*self.text, *continuation)
        mask = torch.ones(4, dtype=torch.bool)
        if text[-1:] == (0,):
            mask = torch.tensor([False, False, False, True])
        elif text[-2:] == (0, 3):
            mask = torch.tensor([False, True, False, False])
        elif text[-1:] == (1,):
            mask[2] = False
        return mask

    def forced(self, continuation, most):
        found = []
        while len(found) < most and int((mask := self.allowed((*continuation, *found))).sum()) == 1:
            found.append(int(mask.nonzero()))
        return found

    def commit(self, tokens):
        self.text += tuple(tokens)
        self.committed += len(tokens)


class Free(Grammar):
    """The constraint ``Grammar`` that forces nothing, and that no drafter learns of."""

    def forced(self, continuation, most):
        return []


@pytest.fixture(scope="module")
def models():
    return remembered_models(4)


@pytest.fixture(scope="module")
def real_models():
    """Return models for drafters that feed rows to the target's own session. SWIFT needs a layer between the first and
    the last."""
    return shared_models(4, layers=3, once=True)


PLAIN = ["none", "chain", "dyspec", "prompt_lookup", "eagle", "falcon"]
OWN_LAYERS = ["del", "kangaroo", "ppd", "lud", "hidden_transfer", "swift", "own_cache"]
KEYS = [key for key in (*PLAIN, *OWN_LAYERS) if key in drafters()]
LAWS = some(product(KEYS, [Grammar, Free]), lambda case: case[0] != "swift")
"""SWIFT searches at every step, which takes long; ``make test`` compares its texts below."""


@pytest.mark.parametrize("key,grammar", LAWS)
def test_the_law_of_the_constrained_target(models, real_models, key, grammar):
    models = real_models if drafters()[key].uses_target else models
    error = step_error(
        models,
        partial(built, key, models),
        verifier("rejection"),
        Sampling(1.0),
        PROMPT,
        steps_before=1,
        constraint=grammar,
    )
    assert error < EXACT


def matched(models, key, seed, rules):
    sampling, rules = Sampling(1.0, seed=seed), rules and rules()
    return text_of(steps_of(models, key, PROMPT, 16, sampling, "sampler_match", constraint=rules))


@pytest.fixture(scope="module")
def constrained(real_models):
    """The texts of plain decoding in which nothing is forced, by seed."""
    texts = [matched(real_models, "none", seed, Free) for seed in range(2)]
    for seed, text in enumerate(texts):
        assert matched(real_models, "none", seed, None) != text, "this would not show a fault"
    return texts


@pytest.mark.parametrize("grammar", [Grammar, Free])
@pytest.mark.parametrize("key", KEYS)
def test_sampler_match_writes_the_text_of_the_constrained_target(
    real_models, constrained, key, grammar
):
    for seed, text in enumerate(constrained):
        assert matched(real_models, key, seed, grammar) == text


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("grammar", [Grammar, Free])
def test_unchecked_tokens_keep_to_the_constraint(real_models, grammar, temperature):
    """Each unforced token is the placeholders' own prediction for its place, whatever was forced before."""
    drafter = usual("lud", real_models, sure=0.0)
    refused = displaced = 0
    for prompt in product(range(4), repeat=2):
        rules, predicted = grammar(), []
        sampling = Sampling(temperature, seed=3)
        for step in begun(real_models, drafter, prompt, 8, sampling, "lud", constraint=rules):
            forced = step.tree.sources.count("forced")
            own = step.tree.tokens[forced:]
            assert own == predicted[forced : forced + len(own)]
            refused += "rejected" in step.verdict.status
            displaced += bool(forced and predicted)
            found = drafter._marginals
            predicted = [] if found is None else found.argmax(-1).tolist()
        text, follow = rules.text, grammar()
        for place, token in enumerate(text):
            follow.text = text[:place]
            assert follow.allowed(())[token]
    assert refused if grammar is Free else displaced


def test_a_constraint_that_one_side_ignores_is_caught(models):
    """Without the constraint the target's law is a different one."""
    given = models, partial(built, "chain", models), verifier("rejection"), Sampling(1.0), PROMPT
    assert step_error(*given) < EXACT
    assert step_error(*given, constraint=Switch()) > 100 * EXACT


class Switch:
    """A factory that gives None to the reader, which calls it first, and the grammar to every run."""

    def __init__(self):
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return None if self.asked == 1 else Grammar()


# ---- JSON schemas, on the embedded models -----------------------------------------------------


def run(drafter, **changes):
    return trace_of(RECORD, drafter=drafter, json_schema=SCHEMA, max_new_tokens=60, **changes)


@pytest.mark.parametrize("temperature", [0.0, 1.2])
def test_documents_of_a_schema(temperature):
    rule = "sampler_match" if temperature else "greedy"
    plain = run("none", temperature=temperature, verifier=rule)
    document = json.loads(plain.summary["text"].removesuffix("<|endoftext|>"))
    validate(document, json.loads(SCHEMA))
    drafted = run("chain", temperature=temperature, verifier=rule)
    assert drafted.summary["text"] == plain.summary["text"]
    forced = [
        (status, p)
        for step in plain.steps
        for status, p in zip(step["nodes"]["status"], step["nodes"]["p"], strict=True)
    ]
    assert len(forced) > 5 and all(pair == ("accepted", 1.0) for pair in forced)
    assert plain.summary["mean_accepted"] >= 1.5  # plain decoding without a schema writes 1 a step
    assert plain.run["constraint"]["key"] == "json_schema"
    assert plain.run["constraint"]["law"] == "masked decoding"


def test_a_lossy_rule_keeps_no_law():
    assert "law" not in run("chain", temperature=1.0, verifier="typical").run["constraint"]


@pytest.mark.parametrize(
    "schema, words",
    [
        ("{", "not valid JSON"),
        ("[1]", "an object in braces"),
        ('{"type": "nonsense"}', "cannot be used"),
        ("{" + " " * 30_000 + "}", "at most"),
        ("[" * 9_000, "not valid JSON"),
    ],
)
def test_schemas_that_are_none(schema, words):
    with pytest.raises(UserError, match=words):
        open_run(RunRequest(RECORD, family(), drafter="none", json_schema=schema))


def test_a_target_without_an_end_is_refused():
    target = load_language_model(family().target)
    with pytest.raises(UserError, match="end-of-text"):
        JsonSchema(SCHEMA, target.tokenizer, target.vocab_size, frozenset())
