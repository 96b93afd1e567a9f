"""The second copy of the draft: what the target predicts there, and how the two distributions are fused."""

import math
from dataclasses import replace

import pytest
import torch

from engine.core.chance import Chance
from engine.core.drafter import Start
from engine.core.sampling import Sampling, display_distribution, distribution
from engine.core.seen import Draft
from engine.rules import Case, verifier
from tests.drafters.writing import built, steps_of, text_of
from tests.verifiers.tiny import shared_models

PROMPT = [3, 5, 7, 2, 9, 11, 4, 1, 8, 13]
WAYS = [Sampling(), Sampling(0.8, top_k=9, seed=3)]


@pytest.fixture(scope="module")
def models():
    return shared_models(16)


def looked(models, sampling, length=3, quoted=2):
    """Return the first draft of a text, and the result of the target's pass over it."""
    made = built("reflective", models, length=length, quoted=quoted, stop_below=0.0)
    session = models.target.session(32)
    session.prefill(PROMPT[:-1])
    made.begin(Start(tuple(PROMPT), sampling, Chance.of(0).drafting, target=session))
    proposal = made.propose(PROMPT, 8)
    draft = Draft(PROMPT[-1], proposal.tree, len(PROMPT), proposal.probes)
    return draft, session.look(draft)


def case_of(draft, seen, sampling):
    p = distribution(seen.logits, sampling)
    chance = Chance.of(1).judging
    asked = seen.probes, draft.probes
    return Case(draft.tree, p, seen.logits, sampling, draft.position, chance, *asked)


@pytest.mark.parametrize("sampling", WAYS, ids=["greedy", "drawn"])
def test_the_reflection_is_what_the_target_says_behind_the_whole_of_it(models, sampling):
    """Draft, quoted words, draft again, read as one plain text."""
    draft, seen = looked(models, sampling)
    tree = draft.tree
    text = [*PROMPT, *tree.tokens, *PROMPT[-2:], *tree.tokens]
    session = models.target.session(64)
    logits, _ = session.feed(text, range(-1, len(text) - 1))
    expected = logits[-1 - len(tree) :]
    torch.testing.assert_close(seen.probes[list(draft.probes.again)], expected)
    alone, _ = models.target.session(64).feed(
        [*PROMPT, *tree.tokens], range(-1, len(PROMPT) + len(tree) - 1)
    )
    torch.testing.assert_close(
        seen.logits, alone[-1 - len(tree) :]
    )  # these rows see nothing of the copy


@pytest.mark.parametrize("weight", [0.0, 0.6, 1.0])
def test_tokens_are_judged_by_the_mixture(models, weight):
    draft, seen = looked(models, WAYS[1])
    case = case_of(draft, seen, WAYS[1])
    verdict = verifier("reflective", {"weight": weight}).judge(case)
    tree, laws = draft.tree, []
    for logits in (seen.logits, seen.probes[list(draft.probes.again)]):
        laws.append(display_distribution(logits, WAYS[1]))
    assert verdict.judgements
    for entry in verdict.judgements:
        row, token = tree.parents[entry.node] + 1, tree.tokens[entry.node]
        p, r = (float(law[row, token]) for law in laws)
        assert entry.p == pytest.approx((1 - weight) * p + weight * r, abs=1e-6)
        assert entry.accept == pytest.approx(min(1.0, entry.p / tree.q[entry.node]), abs=1e-5)


def test_what_is_forbidden_stays_so_where_the_reflection_wants_nothing_else(models):
    sampling = Sampling(0.8, top_k=1, seed=3)
    draft, seen = looked(models, sampling)
    favourites = seen.probes[list(draft.probes.again)].argmax(-1, keepdim=True)
    logits = seen.logits.scatter(-1, favourites, float("-inf"))
    case = case_of(draft, replace(seen, logits=logits), sampling)
    verdict = verifier("reflective", {"weight": 1.0}).judge(case)
    written = [*(draft.tree.tokens[node] for node in verdict.accepted), verdict.final_token]
    for place, token in zip([-1, *verdict.accepted], written, strict=True):
        assert logits[place + 1, token] > float("-inf")
    assert all(math.isfinite(entry.p) for entry in verdict.judgements)


def test_without_weight_it_writes_the_targets_text_and_with_it_another(models):
    plain = text_of(steps_of(models, "none", PROMPT))
    texts = {}
    for weight in (0.0, 0.9):
        rule = verifier("reflective", {"weight": weight})
        made = steps_of(models, "reflective", PROMPT, rule=rule, length=3)
        texts[weight] = text_of(made)
        assert any("fused" in one.title for step in made for one in step.verdict.exhibits)
    assert texts[0.0] == plain
    assert texts[0.9] != plain, "the reflection changes what is written: the rule is lossy"


def test_a_draft_at_the_end_of_the_context_is_not_reflected_on(models):
    """Its copy would not fit; the text is still written up to the last place."""
    steps = steps_of(models, "reflective", PROMPT, 80, length=4, stop_below=0.0)
    assert len(PROMPT) + len(text_of(steps)) == models.target.max_context
    assert steps[0].draft.probes is not None and steps[-2].draft.probes is None
    notes = [step.tree.exhibits[-1].note for step in (steps[0], steps[-2])]
    assert "not reflected" not in notes[0] and "not reflected" in notes[1]
