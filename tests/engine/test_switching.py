"""Entropy adaptive decoding: which model writes each token, and what an unchecked token looks like."""

import json

import pytest
import torch

from engine.batch.together import decode_together
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import LOOPS
from engine.methods import drafters
from engine.methods.ead.drafter import entropy
from engine.model.session import Session
from engine.rules import verifier
from engine.run import open_run
from tests.drafters.writing import begun, built, text_of, usual
from tests.engine.family import request, tokens_of, trace_of
from tests.verifiers.tiny import tiny_models

PROMPT = [3, 5, 7, 3, 5]
OPTIONS = {"threshold": 3.4, "window": 3, "duration": 2}
STORY = "Once upon a time there was a little dog"


@pytest.fixture(scope="module")
def models():
    return tiny_models(16)


def steps_of(models, options=OPTIONS, count=40, sampling=None):
    return begun(models, usual("ead", models, **options), PROMPT, count, sampling)


def by_the_paper(models, threshold, window, duration, count):
    """Return (the text, the writer of each token). Each distribution comes from a fresh reading of the whole text."""
    small, large = models.part("draft"), models.target
    text, writers, entropies = list(PROMPT), [], []
    charge, since = small, 0
    while len(writers) < count:
        p = charge.session(64).extend(text).softmax(-1)
        text.append(int(p.argmax()))
        writers.append("draft" if charge is small else "target")
        entropies.append(-float((p * p.log2()).sum()))
        since += 1
        recent = entropies[-window:]
        wanted = large if sum(recent) / len(recent) > threshold else small
        if wanted is not charge and since >= duration:
            charge, since = wanted, 0
    return text[len(PROMPT) :], writers


@pytest.mark.parametrize("threshold", [3.2, 3.4, 3.45])
@pytest.mark.parametrize("window, duration", [(1, 1), (3, 2), (5, 8)])
def test_the_rolling_entropy_decides_who_writes(models, threshold, window, duration):
    options = {"threshold": threshold, "window": window, "duration": duration}
    steps = list(steps_of(models, options))
    text, writers = by_the_paper(models, threshold, window, duration, 40)
    assert text_of(steps) == text
    assert [next(iter(step.passes)) for step in steps] == writers
    assert all(list(step.passes.values()) == [1] for step in steps)
    assert options != OPTIONS or 5 < writers.count("draft") < 35, "both models have a turn"


def test_a_token_of_the_small_model_is_kept_without_a_look(models):
    for step in steps_of(models):
        if "draft" in step.passes:
            assert (step.p, step.logits, step.final) == (None, None, None)
            assert step.verdict.status == ["accepted"] and step.verdict.judgements == []
            assert step.tree.tokens == step.output
        else:
            assert len(step.tree) == 0 and step.final == "bonus"


def test_the_target_reads_in_one_pass_what_was_written_meanwhile(models, monkeypatch):
    passes, read = [], Session._read

    def counted(self, rows, *rest, **named):
        if self.model is models.target:
            passes.append(len(rows.tokens))
        return read(self, rows, *rest, **named)

    monkeypatch.setattr(Session, "_read", counted)
    steps = list(steps_of(models))
    prefill, *looks = passes
    assert prefill == len(PROMPT) - 1
    assert len(looks) == sum("target" in step.passes for step in steps)
    last = max(index for index, step in enumerate(steps) if "target" in step.passes)
    assert sum(looks) == last + 1, "every token once, the root of the first step among them"


@pytest.mark.parametrize("threshold, writer", [(0.0, "target"), (20.0, "draft")])
def test_at_the_ends_of_the_scale_one_model_writes_alone(models, threshold, writer):
    steps = list(steps_of(models, {"threshold": threshold, "window": 1, "duration": 1}))
    assert {next(iter(step.passes)) for step in steps[1:]} == {writer}
    assert (steps[0].passes, steps[-1].stop) == ({"draft": 1}, "length")


def test_entropy_is_in_bits():
    assert entropy(torch.zeros(8)) == pytest.approx(3.0)
    assert entropy(torch.tensor([0.0, float("-inf"), float("-inf")])) == 0.0


def test_the_same_seed_gives_the_same_text(models):
    def text(seed):
        return text_of(steps_of(models, sampling=Sampling(1.0, seed=seed)))

    assert text(1) == text(1) != text(2)


def test_end_of_text(models):
    text = text_of(steps_of(models))
    end = text[6]
    ended = tiny_models(16)
    ended.target.end_tokens = frozenset([end])
    steps = list(steps_of(ended))
    assert steps[-1].stop == "eos" and steps[-1].output == [end]
    assert len(steps) == text.index(end) + 1


def test_its_trace_counts_passes_and_knows_no_p():
    trace = trace_of(STORY, drafter="ead", max_new_tokens=40)
    assert trace.run["loop"] == "switching" and trace.run["verifier"]["lossless"] is False
    assert trace.run["verifier"]["same_text"] is False
    written = [step for step in trace.steps if step["nodes"]["token"]]
    summary = trace.summary
    assert summary["passes"] == {"draft": len(written), "target": 40 - len(written)}
    assert summary["target_calls"] == 40 - len(written)
    assert (summary["acceptance_rate"], summary["mean_accepted"]) == (None, 1.0)
    for step in written:
        assert step["nodes"]["p"] == [None] and step["nodes"]["q"][0] > 0
        assert (step["judgements"], step["distributions"]) == ([], [])
    curve, gauge = trace.steps[-1]["drafter"]["exhibits"]
    assert (curve["kind"], gauge["kind"]) == ("curve", "gauge")
    assert len(curve["x"]) == len(curve["series"][0]["y"]) == 40
    assert gauge["value"] == pytest.approx(len(written) / 40)


def test_a_paused_run_goes_on_and_a_cancelled_one_ends():
    whole = tokens_of(trace_of(STORY, drafter="ead", max_new_tokens=12))
    run = open_run(request(STORY, drafter="ead", max_new_tokens=12))
    first = [run.step() for _ in range(5)]
    assert [json.loads(line)["output"]["tokens"] for line in first] == [[t] for t in whole[:5]]
    run.cancel()
    assert run.step() is None and json.loads(run.summary())["stop"] == "cancelled"


OWN_LOOP = [cls for cls in drafters().values() if cls.loop != "speculative"]


@pytest.mark.parametrize("cls", OWN_LOOP, ids=lambda cls: cls.key)
def test_drafters_of_other_loops_do_not_share_passes(models, cls):
    assert cls.loop in LOOPS
    asked = TextRequest(built(cls, models), verifier("greedy"), Sampling(), PROMPT, 4)
    with pytest.raises(UserError, match="loop of its own"):
        next(decode_together(models.target, [asked]))
