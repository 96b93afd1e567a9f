"""Texts that share a prompt read it once, and each writes what it writes alone."""

from functools import cache

import pytest
import torch

from engine.core.decode import decode
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.core.step import Clock
from engine.core.text import TextRequest
from engine.methods.chain.drafter import ChainDrafter
from engine.model.language_model import LanguageModel
from engine.model.session import Session
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model

PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9, 2, 6]


@cache
def model_of(architecture: str, lean: bool, static: bool) -> LanguageModel:
    return language_model(tiny_hf_model(architecture), None, architecture, lean, static)


WAYS = [(name, False, False) for name in sorted(CONFIGS)] + [
    ("llama", True, False),
    ("mistral", False, True),
]


@pytest.mark.parametrize(("architecture", "lean", "static"), WAYS)
def test_texts_that_take_turns_write_what_they_write_alone(architecture, lean, static):
    """The first text has already taken steps, with rejections, when the others take over its prompt."""
    target = model_of(architecture, lean, static)
    draft = model_of("llama", True, False)

    def steps(reading=None, length=3):
        drafter = ChainDrafter({"length": length, "stop_below": 0.0}, draft, VOCABULARY)
        request = TextRequest(drafter, verifier("greedy"), Sampling(), PROMPT, 12)
        return decode(target, request, reading=reading)

    reading = PromptReading(PROMPT[:-1])
    alone = [list(steps(length=length)) for length in (3, 1, 2)]
    first = steps(reading)
    began = [next(first), next(first)]
    lanes = [steps(reading, 1), steps(reading, 2)]
    heads = [next(lane) for lane in lanes]
    rests = [list(lane) for lane in lanes]
    together = [
        began + list(first),
        *([head, *rest] for head, rest in zip(heads, rests, strict=True)),
    ]
    for one, other in zip(alone, together, strict=True):
        assert [step.output for step in one] == [step.output for step in other]
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a.logits, b.logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("architecture", "lean", "static"), WAYS)
def test_a_prompt_read_in_parts_is_the_prompt_read_whole(architecture, lean, static):
    """The text that takes the session, and one that copies what was read; the features of the last rows too."""
    target = model_of(architecture, lean, static)
    layers = (2,) if architecture == "llama" else ()
    whole = PromptReading(PROMPT[:-1])
    whole.expect(layers, 6)
    expected = target.session(40, layers)
    features = whole.fill(expected, 6)
    reading, clock = PromptReading(PROMPT[:-1]), Clock(target.device, precise=True)
    reading.expect(layers, 6)
    fresh = lambda: target.session(40, layers)
    read = []
    while part := reading.read_part(fresh, 5, clock):
        read.append((part, reading.unread))
        target.session(40).prefill([7] * 9)  # somebody else's work in between
    assert read == [(5, 8), (5, 3), (3, 0)]
    first = reading.session(fresh, layers)
    assert first.length == len(PROMPT) - 1 and reading.session(fresh, layers).length == 0
    for session in (first, target.session(40, layers)):
        found = reading.fill(session, 6)
        assert (found is None) == (not layers)
        if layers:
            torch.testing.assert_close(found, features, atol=1e-5, rtol=1e-5)
        logits = session.feed([PROMPT[-1], 4], [-1, 0])[0]
        same = expected.feed([PROMPT[-1], 4], [-1, 0])[0]
        torch.testing.assert_close(logits, same, atol=1e-5, rtol=1e-5)
        expected.drop()
    assert reading.charge(1e9) < 1e9, "the time of the parts"


def test_each_gets_the_features_it_asked_for():
    target = model_of("llama", True, False)
    reading = PromptReading(PROMPT)
    reading.expect((3,))
    sessions = [target.session(40, layers) for layers in ((), (2, 0), (3,), (2,))]
    features = [reading.fill(session) for session in sessions]
    assert features[0] is None
    for session, found in list(zip(sessions, features, strict=True))[1:]:
        expected = target.session(40, session.features).prefill(PROMPT)
        torch.testing.assert_close(found, expected, atol=0, rtol=0)
        root = session.feed([5], [-1])[1]
        assert root.shape == (1, found.shape[1])


def test_each_gets_the_last_rows_that_it_asked_for(monkeypatch):
    """Even if these rows were read in another pass than the first rows."""
    monkeypatch.setattr(Session, "prefill_rows", 5)
    target = model_of("llama", False, False)
    every = target.session(40, (2,)).prefill(PROMPT)
    reading = PromptReading(PROMPT)
    for rows, kept in ((3, 3), (None, len(PROMPT)), (6, len(PROMPT)), (99, len(PROMPT))):
        found = reading.fill(target.session(40, (2,)), rows)
        torch.testing.assert_close(found, every[-(rows or len(PROMPT)) :], atol=0, rtol=0)
        assert len(reading._features) == kept
        reading.fill(target.session(40))
    few = PromptReading(PROMPT)
    for rows in (0, 4, 6):
        assert len(few.fill(target.session(40, (2,)), rows)) == rows == len(few._features)


def test_nothing_is_read_twice_and_nothing_shared_is_written(monkeypatch):
    target = model_of("llama", False, False)
    read = []
    prefill = Session.prefill
    monkeypatch.setattr(
        Session, "prefill", lambda self, tokens, *a: read.append(self) or prefill(self, tokens, *a)
    )
    reading = PromptReading(PROMPT)
    first, second = target.session(40), target.session(40)
    for session in (first, second):
        reading.fill(session)
    assert read == [first]
    for session, token in ((first, 1), (second, 2)):
        session.feed([token, 7], [-1, 0])
        session.commit([0, 1])
    found = second.feed([4], [-1])[0]
    alone = target.session(40)
    alone.prefill([*PROMPT, 2, 7])
    torch.testing.assert_close(found, alone.feed([4], [-1])[0], atol=1e-5, rtol=1e-5)


def test_whoever_takes_a_prompt_over_is_charged_its_reading():
    reading = PromptReading(PROMPT)
    assert [reading.charge(spent) for spent in (8.0, 0.1, 0.2)] == [8.0] * 3
    reading.expect((1,))  # the prompt has to be read again
    assert reading.charge(9.0) == 9.0


def test_a_prompt_of_one_token():
    target = model_of("llama", False, False)
    reading = PromptReading([])
    for _ in range(2):
        session = target.session(8, (1,))
        assert reading.fill(session).shape == (0, target.hidden_size)
        assert session.feed([3], [-1])[0].shape == (1, VOCABULARY)
