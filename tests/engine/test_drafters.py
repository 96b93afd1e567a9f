"""What the drafters propose."""

import itertools
import math
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.constraint import Constraint
from engine.core.options import Option, resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.shared.fixed_shape import best_first_tree
from engine.methods.shared.ngram_index import NgramIndex
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from engine.rules import verifier
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.tiny import VOCABULARY, tiny_hf_model, tiny_model
from tests.soundness import assert_sound


def test_the_longest_and_then_the_latest_match_wins():
    text = [1, 2, 3, 9, 2, 3, 8, 3, 7, 2, 3]
    index = NgramIndex(1, 3)
    index.read(text)
    assert index.latest(text) == (6, 2)  # "2 3" last continued at position 6
    index.read([*text, 5])
    assert index.latest([*text, 5]) is None


@settings(max_examples=60, deadline=None)
@given(text=st.lists(st.integers(0, 3), min_size=1, max_size=30), cut=st.integers(0, 30))
def test_ngram_index_against_a_search(text, cut):
    index = NgramIndex(1, 4)
    index.read(text[:cut])
    index.read(text)
    assert index.latest(text) == searched(text)


def searched(text):
    for size in (4, 3, 2, 1):
        for start in range(len(text) - size - 1, -1, -1):
            if text[start : start + size] == text[-size:]:
                return start + size, size
    return None


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 9999),
    length=st.integers(1, 4),
    vocabulary=st.integers(2, 5),
    budget=st.integers(1, 30),
)
def test_best_first_tree_holds_the_likeliest_prefixes(seed, length, vocabulary, budget):
    generator = torch.Generator().manual_seed(seed)
    marginals = torch.rand(length, vocabulary, generator=generator).softmax(-1)
    tree, rows = best_first_tree(marginals, budget), marginals.tolist()
    assert_sound(tree)
    prefixes = itertools.chain.from_iterable(
        itertools.product(*rows[:depth]) for depth in range(1, length + 1)
    )
    values = sorted(map(math.prod, prefixes), reverse=True)
    assert len(tree) == min(budget, len(values))
    got = sorted((path_value(tree, rows, node) for node in range(len(tree))), reverse=True)
    assert got == pytest.approx(values[: len(tree)], rel=1e-5)


def path_value(tree, rows, node):
    value = 1.0
    while node != ROOT:
        value *= rows[tree.depths[node] - 1][tree.tokens[node]]
        node = tree.parents[node]
    return value


OPTIONS = (
    Option("length", "int", 4, "", 1, 8),
    Option("share", "float", 0.5, "", 0, 1),
    Option("eager", "bool", False, ""),
    Option("shape", "choice", "wide", "", choices=("wide", "deep")),
)


def test_options_are_parsed_from_text():
    given = {"length": "7", "share": "0.25", "eager": "true", "shape": "deep"}
    parsed = {"length": 7, "share": 0.25, "eager": True, "shape": "deep"}
    assert resolve("x", OPTIONS, given) == parsed
    assert resolve("x", OPTIONS, {})["length"] == 4
    wrong = [("length", bad) for bad in ("9", "2.5", "many", None)]
    wrong += [("share", "nan"), ("share", "inf"), ("eager", "perhaps"), ("shape", "round")]
    for name, bad in [*wrong, ("colour", "red")]:
        with pytest.raises(UserError, match=name):
            resolve("x", OPTIONS, {name: bad})


@pytest.fixture(scope="module")
def models():
    opener = partial(LanguageModel, tokenizer=None, name="part")
    return tiny_parts(tiny_model(num_hidden_layers=4), drafters().values(), opener)


@pytest.mark.parametrize("cls", drafters().values(), ids=lambda cls: cls.key)
def test_a_text_of_one_token_has_no_room_for_a_draft(models, cls):
    """The drafter observes a step for which it did not draft, and keeps no hidden states of the prompt."""
    made = built(cls, models)
    request = TextRequest(made, verifier(cls.default_greedy_verifier), Sampling(), [3, 5, 7, 3], 1)
    steps = list(run_loop(models.target, request))
    assert sum(len(step.output) for step in steps) == 1
    assert made.start.features is None


class Dictation(Constraint):
    """A constraint that forces every token."""

    def allowed(self, continuation):
        return torch.arange(VOCABULARY) == 9

    def forced(self, continuation, most):
        return [9] * most

    def commit(self, tokens):
        self.committed += len(tokens)


SPECULATIVE = [key for key, cls in drafters().items() if cls.loop == "speculative"]


@pytest.mark.parametrize("key", SPECULATIVE)
def test_forced_tokens_may_fill_the_room(models, key):
    cls = drafters()[key]
    rule = verifier(cls.default_greedy_verifier)
    made, prompt = built(cls, models), [3, 5, 7, 3]
    request = TextRequest(made, rule, Sampling(), prompt, 5, constraint=Dictation())
    (step,) = run_loop(models.target, request)
    assert step.output == [9] * 5


def test_defaults_lie_in_their_ranges():
    for option in [option for cls in drafters().values() for option in cls.options]:
        assert option.parse(option.default) == option.default, option
        assert option.help.endswith((".", ").")), option


@cache
def with_more_tokens():
    """A target whose head has rows for tokens without embeddings, and a part of every kind."""
    module = tiny_hf_model(num_hidden_layers=2, hidden_size=16)
    module.lm_head = torch.nn.Linear(16, 3 * VOCABULARY, bias=False)
    opener = lambda one: language_model(one, None, "tiny", lean=False)
    return tiny_parts(opener(module), drafters().values(), opener)


@pytest.mark.parametrize(
    "key", [cls.key for cls in drafters().values() if cls.loop == "speculative"]
)
def test_a_token_without_an_embedding_may_be_written(key):
    steps = steps_of(with_more_tokens(), key, [3, 5, 7], 10)
    assert max(text_of(steps)) >= VOCABULARY
