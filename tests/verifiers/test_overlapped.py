"""PEARL's loop: exact in every branch, draft and target truly concurrent, nothing running between steps."""

import dataclasses
import itertools
import threading
from functools import cache

import pytest
import torch

from engine.core.overlapped import OverlappedText
from engine.core.sampling import Sampling, display_distribution
from engine.methods.none.drafter import NoDrafter
from engine.methods.pearl.drafter import PearlDrafter
from engine.proof.memo import remembering
from engine.proof.step_law import Reader
from engine.rules import verifier
from tests.drafters.writing import begun, text_of, usual
from tests.statistics import p_value, power
from tests.verifiers.step_errors import run_error
from tests.verifiers.test_constraints import Grammar
from tests.verifiers.tiny import tiny_models

EXACT = 1e-5
PROMPT = (1, 2, 0, 1, 2)
GREEDY = Sampling()


@cache
def small(vocabulary, end_token=None):
    return tiny_models(vocabulary, end_token=end_token)


@cache
def memo(vocabulary, end_token=None):
    return remembering(small(vocabulary, end_token))


def pearl(models, cls=PearlDrafter, length=2):
    return usual(cls, models, length=length)


def steps_of(models, drafter, sampling=GREEDY, rule="greedy", count=20):
    return begun(models, drafter, list(PROMPT), count, sampling, rule)


# ---- Exact, branch by branch --------------------------------------------------------------------


CASES = {
    "t1": ("rejection", Sampling(1.0)),
    "top_p": ("rejection", Sampling(0.7, top_p=0.8)),
    "sampler_match": ("sampler_match", Sampling(0.7, top_p=0.8)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_writes_the_target_law(case):
    models, (rule, sampling) = memo(3), CASES[case]
    error = run_error(models, lambda: pearl(models), verifier(rule), sampling, PROMPT[:3])
    assert error < EXACT


def test_an_end_of_text_among_the_drafted():
    models, rule = memo(3, 0), verifier("rejection")
    sampling = Sampling(1.0, top_k=2)
    assert run_error(models, lambda: pearl(models), rule, sampling, (1, 2, 2)) < EXACT


def test_under_a_constraint():
    models, rule = memo(4), verifier("rejection")
    sampling = Sampling(1.0, top_k=2)
    assert run_error(models, lambda: pearl(models), rule, sampling, PROMPT, Grammar) < EXACT


class HidesItsSampling(PearlDrafter):
    """Drawn at one temperature, declared at another."""

    def _pick(self, q, drawn):
        return super()._pick(q.sqrt(), drawn)


class ForgetsUnlikely(OverlappedText):
    """Throws away the tokens waiting for the next step, from the first that q finds unlikely."""

    def step(self, pair, clock, elapsed):
        step = super().step(pair, clock, elapsed)
        self._waiting = list(itertools.takewhile(lambda guess: guess.q > 0.5, self._waiting))
        self.drafter._reader.rewind(len(self.context) + len(self._waiting) - 1)
        return step


def test_a_planted_bias_is_caught():
    models, rule = memo(3), verifier("rejection")
    wrong = lambda: pearl(models, HidesItsSampling)
    assert run_error(models, wrong, rule, Sampling(1.0, top_k=2), PROMPT[:3]) > 100 * EXACT


def test_a_planted_bias_of_the_loop_is_caught(monkeypatch):
    models, rule = memo(3), verifier("rejection")
    monkeypatch.setattr("engine.core.overlapped.OverlappedText", ForgetsUnlikely)
    error = run_error(models, lambda: pearl(models), rule, Sampling(1.0, top_k=2), PROMPT[:3])
    assert error > 100 * EXACT


def test_every_q_is_that_of_the_text_before_the_token():
    """This also holds of tokens drafted before the text in front of them was checked."""
    models, sampling = small(16), Sampling(0.9, seed=5)
    draft, context, seen = models.part("draft"), list(PROMPT), 0
    for step in steps_of(models, pearl(models, length=3), sampling, "rejection", 30):
        for node, parent in enumerate(step.tree.parents):
            before = [step.tree.tokens[place] for place in step.tree.path(node)[:-1]]
            logits = draft.session(64).extend([*context, *before])
            law = step.tree.shown_law(parent)
            assert torch.allclose(law, display_distribution(logits, sampling), atol=1e-5)
            seen += 1
        context += step.output
    assert seen > 30


# ---- With the real streams of chance ------------------------------------------------------------

SAMPLES, FALSE_ALARM = 400, 1e-3


def test_the_first_tokens_of_many_runs():
    """One false alarm in a thousand; a shift of a quarter of the probability would be detected."""
    models, sampling = memo(4), Sampling(0.8)
    law = Reader(models, sampling).law(PROMPT, ())
    likeliest = max(law, key=law.get)
    biased = {path: 0.75 * weight + 0.25 * (path == likeliest) for path, weight in law.items()}
    assert power(law, biased, SAMPLES, FALSE_ALARM) > 0.9
    drawn = []
    for seed in range(SAMPLES):
        seeded = dataclasses.replace(sampling, seed=seed)
        drawn.append(tuple(text_of(steps_of(models, pearl(models), seeded, "rejection", 3))))
    assert p_value(drawn, law) > FALSE_ALARM


# ---- The same text ------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_the_text_of_the_target_alone(length, count):
    models = small(16)
    assert text_of(steps_of(models, pearl(models, length=length), count=count)) == plain(count)


@cache
def plain(count, sampling=GREEDY):
    rule = "greedy" if sampling.greedy else "sampler_match"
    return text_of(steps_of(small(16), NoDrafter({}), sampling, rule, count))


def test_sampler_match_writes_the_text_of_plain_decoding():
    models, sampling = small(16), Sampling(0.9, seed=3)
    again = steps_of(models, pearl(models, length=3), sampling, "sampler_match")
    assert text_of(again) == plain(20, sampling)


def test_beyond_the_context_of_the_draft_the_target_goes_on_alone():
    models = small(16)
    drafter = pearl(models, length=3)
    drafter.max_context = len(PROMPT) + 9
    steps = list(steps_of(models, drafter))
    assert text_of(steps) == plain(20)
    assert steps[-1].passes == {"target": 1} and steps[-1].final == "bonus"


def test_a_refused_token_throws_away_what_was_drafted_behind_it():
    """A step holds the tokens whose fate it decides, and each drafted token appears in one step."""
    models = small(16)
    steps = list(steps_of(models, pearl(models, length=3), count=30))
    refused = [step for step in steps if "rejected" in step.verdict.status]
    kept = [step for step in steps if step.final is None]
    assert refused and kept
    for step in steps:
        judged = {entry.node for entry in step.verdict.judgements}
        missing = step.p[:, 0].isnan().tolist()
        assert not any(missing[step.tree.parents[node] + 1] for node in judged)
        expected = step.verdict.accepted if step.final is None else range(len(step.tree))
        assert list(expected) == list(range(len(step.tree)))
    drafted = sum(step.passes.get("draft", 0) for step in steps)
    assert drafted - 3 < sum(len(step.tree) for step in steps) <= drafted


def test_the_same_seed_gives_the_same_steps():
    def outcome(seed):
        models, sampling = small(16), Sampling(0.9, seed=seed)
        steps = steps_of(models, pearl(models, length=3), sampling, "rejection", 24)
        return [(step.tree.tokens, step.verdict.judgements, step.output) for step in steps]

    assert outcome(4) == outcome(4) != outcome(5)


# ---- Two at once, and nothing between steps -----------------------------------------------------


class Meets(PearlDrafter):
    """Drafts only once the target is at work, and holds the target until drafting has begun."""

    def begin(self, start):
        super().begin(start)
        self.drafting, self.looking, self.at_work = threading.Event(), threading.Event(), 0
        look = start.target.look

        def meet(draft):
            self.looking.set()
            assert self.drafting.wait(30), "the draft does not work while the target does"
            return look(draft)

        start.target.look = meet

    def propose(self, context, max_depth):
        self.at_work += 1
        self.drafting.set()
        assert self.looking.wait(30), "the target does not work while the draft does"
        tree = super().propose(context, max_depth)
        self.at_work -= 1
        return tree


def test_draft_and_target_work_at_the_same_time():
    models = small(16)
    drafter = pearl(models, Meets)
    for step in steps_of(models, drafter, count=6):
        assert drafter.at_work == 0, "the draft goes on while the run is paused"
        drafter.drafting.clear()
        drafter.looking.clear()
        assert {span.lane for span in step.spans} >= {"target"}


def test_spans_lie_within_the_milliseconds_of_their_step():
    models, elapsed, both = small(16), 0.0, 0
    for step in steps_of(models, pearl(models, length=3), count=12):
        elapsed += step.prefill_milliseconds
        length = step.milliseconds["draft"] + step.milliseconds["verify"]
        for span in step.spans:
            assert elapsed - 1e-6 <= span.start <= span.end <= elapsed + length + 1e-6
        both += len(step.spans) == 2
        elapsed += sum(step.milliseconds.values())
    assert both


def side_threads():
    return [one for one in threading.enumerate() if one.name.startswith("side")]


def test_closing_a_run_ends_its_thread_and_threads_of_torch_are_restored():
    models, before = small(16), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        steps = steps_of(models, pearl(models))
        next(steps)
        assert torch.get_num_threads() == 2 and side_threads()
        steps.close()
        assert not side_threads()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("who", ["draft", "target"])
def test_an_error_on_either_side_ends_the_run(who):
    class Fails(PearlDrafter):
        def begin(self, start):
            super().begin(start)
            if who == "target":
                start.target.look = fail

        def propose(self, context, max_depth):
            return fail() if who == "draft" else super().propose(context, max_depth)

    def fail(*_):
        raise RuntimeError(f"the {who} fails")

    models = small(16)
    with pytest.raises(RuntimeError, match=f"the {who} fails"):
        list(steps_of(models, pearl(models, Fails)))
    assert not side_threads()


def test_a_drafter_of_trees_is_refused():
    class Branches(PearlDrafter):
        def propose(self, context, max_depth):
            tree = super().propose(context, max_depth)
            tree.draw(-1, (tree.tokens[0] + 1) % 16)
            return tree

    models = small(16)
    with pytest.raises(ValueError, match="takes chains"):
        list(steps_of(models, pearl(models, Branches)))
