"""A rule without final tokens: every drafter continues after the last kept node, and forced tokens stay."""

from functools import cache

import pytest

from engine.methods import drafters
from engine.rules import verifier
from tests.drafters.writing import begun, text_of
from tests.verifiers.test_constraints import Grammar
from tests.verifiers.tiny import shared_models

PROMPT = [3, 5, 7, 2, 9, 11, 4]
COUNT = 14
AT_HAND = shared_models(4, once=True).parts.keys()
DRAFTERS = [
    key
    for key, cls in drafters().items()
    if cls.loop == "speculative" and cls.needs.keys() <= AT_HAND
]
STATELESS = ("chain", "medusa", "hydra", "clover", "eagle", "falcon", "chimera", "kangaroo")
"""Drafters that draft in mid-text as they would with the text so far as a fresh prompt."""


@cache
def models(vocabulary=16):
    return shared_models(vocabulary, once=vocabulary == 4)


def written(key, prompt, count, threshold=0.0, constraint=None, pair=None):
    pair, rule = pair or models(), verifier("specreason", {"threshold": threshold})
    return begun(pair, key, prompt, count, rule=rule, constraint=constraint)


@pytest.mark.parametrize("key", DRAFTERS)
def test_a_text_goes_on_behind_a_kept_draft(key):
    steps = list(written(key, PROMPT, COUNT))
    assert len(text_of(steps)) == COUNT


@pytest.mark.parametrize("key", [key for key in STATELESS if key in DRAFTERS])
def test_drafts_behind_a_kept_one_are_those_of_a_fresh_reading(key):
    text, kept = list(PROMPT), 0
    for step in written(key, PROMPT, COUNT):
        fresh = next(written(key, text, COUNT + len(PROMPT) - len(text))).tree
        assert (step.tree.tokens, step.tree.parents) == (fresh.tokens, fresh.parents)
        text += step.output
        kept += step.final is None and step.stop is None
    assert kept, "the rule has left out a final token"


@pytest.mark.parametrize("key", ["specreason", "chain"])
def test_forced_tokens_stay_where_the_step_is_refused(key):
    """The text is then the target's own under the constraint."""
    pair = models(4)
    plain = text_of(written("none", [1, 2, 0], COUNT, 9.0, behind_a_zero(), pair))
    first, *steps = written(key, [1, 2, 0], COUNT, 9.0, behind_a_zero(), pair)
    assert first.tree.sources[:3] == ["forced", "forced", "draft model"]
    assert (first.output[:2], first.final) == ([3, 1], "recovered")
    assert text_of([first, *steps]) == plain


def behind_a_zero():
    """Return a grammar that has just seen a 0, so that two tokens are forced."""
    constraint = Grammar()
    constraint.text = (0,)
    return constraint
