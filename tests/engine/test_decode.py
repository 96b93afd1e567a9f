"""The loop: what it writes, where it stops, and what it costs."""

import json
from functools import cache

import pytest

from engine.core.decode import decode
from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.tree import ROOT, DraftTree
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.prompt_lookup.drafter import PromptLookupDrafter
from engine.model.session import Session
from engine.rules import verifier
from tests.engine.tiny import VOCABULARY, generated, tiny_hf_model, tiny_model

GREEDY = Sampling()
PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9]


class Oracle(Drafter):
    """A drafter of a given text, with one wrong sibling before each right token."""

    key, family, summary = "oracle", "tree", ""
    draw_kinds = ("one_hot",)

    def __init__(self, text: list[int], length: int = 5) -> None:
        super().__init__({})
        self.text, self.length, self.closed = text, length, False

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        ahead = self.text[len(context) : len(context) + min(self.length, max_depth)]
        for token in ahead:
            tree.draw(parent, (token + 1) % VOCABULARY, source="wrong")
            parent = tree.draw(parent, token, source="right")
        return tree

    def close(self):
        self.closed = True


@cache
def plain_text(count: int) -> list[int]:
    """Return the prompt and its greedy continuation by transformers' own loop."""
    return PROMPT + generated(tiny_hf_model("llama"), PROMPT, count)


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def run(model, drafter, count=30, sampling=GREEDY, rule="greedy"):
    return list(decode(model, TextRequest(drafter, verifier(rule), sampling, PROMPT, count)))


def written(steps) -> list[int]:
    return [token for step in steps for token in step.output]


def test_greedy_is_what_generate_writes(model):
    text = plain_text(30)
    assert len(set(text[-30:])) > 3, "the tiny model repeats itself; the test would see nothing"
    for drafter in (
        Oracle(text),
        PromptLookupDrafter({"length": 4, "max_ngram": 3, "min_ngram": 1}),
    ):
        assert written(run(model, drafter)) == text[len(PROMPT) :]


def test_a_perfect_draft_is_taken_whole_and_a_bonus_added(model):
    steps = run(model, Oracle(plain_text(40), length=5), count=30)
    assert [len(step.output) for step in steps] == [6] * 5
    assert {step.final for step in steps} == {"bonus"}


def test_one_full_pass_a_step(model, monkeypatch):
    calls = []
    read = Session._read
    monkeypatch.setattr(
        Session,
        "_read",
        lambda self, rows, *a, **k: calls.append(len(rows.tokens)) or read(self, rows, *a, **k),
    )
    steps = run(model, Oracle(plain_text(30)), count=30)
    prefill, *passes = calls
    assert prefill == len(PROMPT) - 1
    assert passes == [len(step.tree) + 1 for step in steps]


def test_end_of_text_inside_an_accepted_run(model):
    text = plain_text(30)
    end = text[len(PROMPT) + 2]
    ended = tiny_model("llama")
    ended.end_tokens = frozenset([end])
    first = text.index(end, len(PROMPT))
    steps = run(ended, Oracle(text, length=6))
    assert written(steps) == text[len(PROMPT) : first + 1]
    last = steps[-1]
    assert (last.stop, last.final) == ("eos", None)
    beyond = [n for n, depth in enumerate(last.tree.depths) if depth > len(last.output)]
    assert beyond and {last.verdict.status[n] for n in beyond} == {"ignored"}
    assert not {entry.node for entry in last.verdict.judgements} & set(beyond)


def test_end_of_text_as_the_final_token(model):
    text = plain_text(30)
    ended = tiny_model("llama")
    ended.end_tokens = frozenset([text[len(PROMPT)]])
    steps = run(ended, Oracle([]))
    assert written(steps) == text[len(PROMPT) : len(PROMPT) + 1]
    assert (steps[-1].stop, steps[-1].final) == ("eos", "bonus")


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_length_is_kept_exactly(model, count):
    steps = run(model, Oracle(plain_text(30)), count=count)
    assert len(written(steps)) == count
    assert [step.stop for step in steps] == [None] * (len(steps) - 1) + ["length"]


def test_the_context_is_never_overrun(model):
    small = tiny_model("llama")
    small.max_context = len(PROMPT) + 9
    steps = run(small, Oracle(plain_text(30)), count=30)
    assert len(written(steps)) == 9
    assert steps[-1].stop == "context"


def test_a_prompt_of_one_token(model):
    steps = list(decode(model, TextRequest(Oracle([]), verifier("greedy"), GREEDY, [7], 4)))
    assert len(written(steps)) == 4


def test_closing_the_generator_closes_the_drafter(model):
    drafter = Oracle(plain_text(30))
    steps = decode(model, TextRequest(drafter, verifier("greedy"), GREEDY, PROMPT, 30))
    next(steps)
    assert not drafter.closed
    steps.close()
    assert drafter.closed


@pytest.mark.parametrize("rule", ["rejection", "sampler_match"])
def test_same_seed_same_steps(model, rule):
    sampling = Sampling(temperature=0.9, seed=11)

    def tokens(sampling):
        return [step.output for step in run(model, dyspec(), 20, sampling, rule)]

    assert tokens(sampling) == tokens(sampling)
    assert tokens(sampling) != tokens(Sampling(temperature=0.9, seed=12))


def dyspec():
    return DySpecDrafter(
        {"budget": 6, "depth": 4, "width": 2, "sharpness": 2.0, "stop_below": 0.6},
        tiny_model("llama", seed=5),
        VOCABULARY,
    )


def test_a_tree_deeper_than_asked_is_cut(model):
    class Deep(Oracle):
        def propose(self, context, max_depth):
            return super().propose(context, 99)

    steps = run(model, Deep(plain_text(40), length=12), count=8)
    assert len(written(steps)) == 8


def test_json_of_numbers_stays_finite(model):
    """A target that gives a token probability 0 must not put NaN into a step."""
    sampling = Sampling(temperature=0.01, top_k=1, seed=1)
    for step in run(model, dyspec(), 10, sampling, "rejection"):
        for entry in step.verdict.judgements:
            json.dumps([entry.p, entry.q, entry.accept, entry.coin], allow_nan=False)


def test_beyond_the_drafts_context_the_target_goes_on_alone(model):
    text = plain_text(30)
    drafter = Oracle(text)
    drafter.max_context = len(PROMPT) + 10
    steps = run(model, drafter, count=30)
    assert written(steps) == text[len(PROMPT) :]
    depths = [step.position + max(step.tree.depths, default=0) for step in steps]
    drafted = [d for d, step in zip(depths, steps, strict=True) if len(step.tree)]
    assert max(drafted) < len(PROMPT) + 10
    assert not any(len(step.tree) for step in steps[-5:])
