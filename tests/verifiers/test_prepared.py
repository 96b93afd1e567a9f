"""SSD's loop: exact in every branch, drafts ready for outcomes that come true, target and draft truly concurrent."""

import itertools
import threading
from functools import cache

import pytest
import torch

from engine.core.options import resolve
from engine.core.sampling import Sampling, display_distribution
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.none.drafter import NoDrafter
from engine.methods.ssd.drafter import SsdDrafter
from engine.proof.memo import remembering
from engine.rules import verifier
from tests.verifiers.step_errors import run_error
from tests.verifiers.test_constraints import Grammar
from tests.verifiers.tiny import tiny_models

EXACT = 1e-5
PROMPT = (1, 2, 0, 1, 2)
GREEDY, FEW = Sampling(), Sampling(1.0, top_k=2)


@cache
def small(vocabulary):
    return tiny_models(vocabulary)


@cache
def memo(vocabulary):
    return remembering(tiny_models(vocabulary))


def ssd(models, cls=SsdDrafter, **options):
    return cls.build(resolve("ssd", cls.options, {"length": 3, "outcomes": 8, **options}), models)


def steps_of(models, drafter, sampling=GREEDY, rule="greedy", count=20):
    request = TextRequest(drafter, verifier(rule), sampling, list(PROMPT), count)
    return run_loop(models.target, request)


def written(steps):
    return [token for step in steps for token in step.output]


def is_hit(step):
    return "prepared draft" in step.tree.sources


# ---- Exact, branch by branch --------------------------------------------------------------------

EVERY = {"length": 1, "outcomes": 3}
"""A draft for every outcome of one token, where two tokens can come; in a text of three tokens, only a refused one leaves
room for a draft behind it."""

CASES = {
    "every outcome": ("rejection", FEW, EVERY),
    "two tokens, one outcome": ("rejection", FEW, {"length": 2, "outcomes": 1}),
}


class Counts(SsdDrafter):
    hits = 0

    def _hit(self, context):
        hit = super()._hit(context)
        Counts.hits += hit is not None
        return hit


def error(options, rule="rejection", sampling=FEW, cls=SsdDrafter, constraint=lambda: None):
    models, judge = memo(4), verifier(rule)
    return run_error(
        models, lambda: ssd(models, cls, **options), judge, sampling, PROMPT[:3], constraint
    )


@pytest.mark.parametrize("case", CASES)
def test_a_run_writes_the_target_law(case):
    rule, sampling, options = CASES[case]
    assert error(options, rule, sampling, Counts) < EXACT
    assert Counts.hits or options != EVERY


def test_under_a_constraint():
    assert error(EVERY, constraint=Grammar) < EXACT


class HidesItsSampling(SsdDrafter):
    """What is prepared is drawn at one temperature and declared at another."""

    def _pick(self, q, drawn):
        return super()._pick(q.sqrt() if self._outcomes else q, drawn)


class PrefersLikely(SsdDrafter):
    """A prepared draft is used only if q finds the token drawn first likely."""

    def _hit(self, context):
        hit = super()._hit(context)
        return hit if hit and hit.laws[0][hit.tokens[0]] > 0.5 else None


@pytest.mark.parametrize("cls", [HidesItsSampling, PrefersLikely])
def test_a_planted_bias_is_caught(cls):
    assert error(EVERY, cls=cls) > 100 * EXACT


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(0.9, seed=5)], ids=["greedy", "drawn"])
def test_every_q_is_that_of_the_text_before_the_token(sampling):
    """Also of tokens that were drafted before the target had said what comes before them."""
    models, rule = small(16), "greedy" if sampling.greedy else "rejection"
    draft, context, prepared = models.part("draft"), list(PROMPT), 0
    for step in steps_of(models, ssd(models), sampling, rule, 30):
        for node, parent in enumerate(step.tree.parents):
            before = [step.tree.tokens[place] for place in step.tree.path(node)[:-1]]
            logits = draft.session(64).extend([*context, *before])
            law = step.tree.shown_law(parent)
            assert torch.allclose(law, display_distribution(logits, sampling), atol=1e-5)
            prepared += is_hit(step)
        context += step.output
    assert prepared >= 3


# ---- The same text, and what is drafted ---------------------------------------------------------


@cache
def plain(sampling=GREEDY):
    rule = "greedy" if sampling.greedy else "sampler_match"
    return written(steps_of(small(16), NoDrafter({}), sampling, rule))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_text_of_the_target_alone(length):
    models, sampling = small(16), Sampling(0.9, seed=3)
    assert written(steps_of(models, ssd(models, length=length))) == plain()
    again = steps_of(models, ssd(models, length=length), sampling, "sampler_match")
    assert written(again) == plain(sampling)


def test_the_draft_of_a_hit_is_that_of_a_chain_made_afterwards():
    """In greedy decoding every step drafts what ``chain`` drafts, and a hit costs no pass before the target's."""
    models = small(16)
    steps = list(steps_of(models, ssd(models), count=30))
    hits = [is_hit(step) for step in steps]
    assert 2 <= sum(hits) < len(hits)
    context = list(PROMPT)
    for step in steps[:-1]:
        fresh = ssd(models)
        request = TextRequest(fresh, verifier("greedy"), GREEDY, context, 9)
        first = next(run_loop(models.target, request))
        most = len(step.tree)
        assert first.tree.tokens[:most] == step.tree.tokens
        context += step.output


def test_the_table_tells_which_outcome_came_true():
    models = small(16)
    steps = list(steps_of(models, ssd(models), count=30))
    for step, later in itertools.pairwise(steps):
        shown = [one.make() for one in step.tree.exhibits]
        (table,) = [one for one in shown if one.title == "Outcomes prepared for"]
        chances = [row[2] for row in table.rows]
        assert chances == sorted(chances, reverse=True)
        true = [row for row in table.rows if row[4] == "yes"]
        for kept, token, *_ in true:
            assert (kept, token.id) == (len(step.verdict.accepted), step.output[-1])
        if true and len(later.tree):
            assert is_hit(later)


def test_beyond_the_context_of_the_draft_the_target_goes_on_alone():
    models = small(16)
    drafter = ssd(models)
    drafter.max_context = len(PROMPT) + 9
    steps = list(steps_of(models, drafter))
    assert written(steps) == plain()
    assert steps[-1].passes == {"target": 1}


# ---- Two at once --------------------------------------------------------------------------------


class Meets(SsdDrafter):
    """Prepares only once the target is at work, and holds the target until it prepares."""

    def begin(self, start):
        super().begin(start)
        self.preparing, self.looking = threading.Event(), threading.Event()
        look = start.target.look

        def meet(draft):
            self.looking.set()
            assert self.preparing.wait(30), "the draft does not work while the target does"
            return look(draft)

        start.target.look = meet

    def prepare(self):
        self.preparing.set()
        assert self.looking.wait(30), "the target does not work while the draft does"
        super().prepare()


def test_draft_and_target_work_at_the_same_time():
    models, elapsed = small(16), 0.0
    drafter = ssd(models, Meets)
    for step in steps_of(models, drafter, count=8):
        drafter.preparing.clear()
        drafter.looking.clear()
        elapsed += step.prefill_milliseconds
        length = step.milliseconds["draft"] + step.milliseconds["verify"]
        for span in step.spans:
            assert elapsed - 1e-6 <= span.start <= span.end <= elapsed + length + 1e-6
        elapsed += sum(step.milliseconds.values())
