"""Texts that begin with one prompt share its keys and values, and each is the same as when it is written alone."""

from dataclasses import replace
from itertools import product

import pytest

from engine.batch.branches import Branches
from engine.batch.separate import SeparateSessions
from engine.batch.together import Budget, decode_together, sessions_of
from engine.core.text import TextRequest
from engine.methods.lookahead.drafter import LookaheadDrafter
from engine.model.language_model import LanguageModel
from engine.model.session import Session
from engine.parts.loading import Models
from tests.drafters.writing import built, text_of
from tests.engine.test_together import LONG, alone, assert_same, model_of, requests, together
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model
from tests.grids import some

PROMPT = LONG * 3


@pytest.fixture(scope="module")
def draft() -> LanguageModel:
    return LanguageModel(tiny_hf_model("llama", seed=5), None, "draft")


def of_one_prompt(draft, prompt=PROMPT, **others) -> list[TextRequest]:
    """Return four texts after one prompt, drafted in four ways, that end in different rounds."""
    return [replace(one, prompt=prompt) for one in requests(draft, **others)]


def plain(architecture: str) -> LanguageModel:
    return LanguageModel(tiny_hf_model(architecture), None, architecture)


@pytest.fixture
def held(monkeypatch) -> list[Session]:
    """Return a list that gets each session in which the target has read at least the prompt."""
    sessions, prefill = [], Session.prefill

    def noted(self, tokens, *more, **named):
        if self.model.name != "draft" and len(tokens):
            sessions.append(self)
        return prefill(self, tokens, *more, **named)

    monkeypatch.setattr(Session, "prefill", noted)
    return sessions


GREEDY = some(
    product(sorted(CONFIGS), [PROMPT, [7]]),
    lambda case: case[1] is PROMPT or case[0] in {"llama", "gemma2"},
)
"""A prompt of one token, of which nothing is read before the texts begin: without windows, and with windows in some
layers."""


@pytest.mark.parametrize(("architecture", "prompt"), GREEDY)
def test_greedy_texts_are_those_of_one_at_a_time(architecture, prompt, draft, held):
    target = plain(architecture)
    expected = [alone(target, one) for one in of_one_prompt(draft, prompt)]
    held.clear()
    assert_same(together(target, of_one_prompt(draft, prompt)), expected)
    assert len(held) == (len(prompt) > 1), "one session reads the prompt, once"


OTHERS = some(sorted(CONFIGS), {"mistral", "gemma2", "gpt2", "qwen3"}.__contains__)
"""With windows, with windows in some layers and caps, with learned positions, with norms of q and k."""


@pytest.mark.parametrize("architecture", OTHERS)
def test_texts_after_different_prompts_share_a_session_too(architecture, draft, monkeypatch):
    target, opened = plain(architecture), []
    expected = [alone(target, one) for one in requests(draft)]
    session = target.session
    monkeypatch.setattr(target, "session", lambda *given: opened.append(given) or session(*given))
    assert_same(together(target, requests(draft)), expected)
    assert len(opened) == 1


def test_long_texts_have_sessions_of_their_own(draft, monkeypatch):
    """A row is compared with the columns of all texts of its session."""
    monkeypatch.setattr("engine.batch.together.MOST_COLUMNS", 4 * 60)
    target = plain("llama")
    assert type(sessions_of(target, 60, 4, ())) is Branches
    assert type(sessions_of(target, 61, 4, ())) is SeparateSessions
    assert type(sessions_of(target, 161, 4, (), 101)) is Branches, "the common prompt is held once"


@pytest.mark.parametrize(("rule", "temperature"), [("rejection", 0.9), ("sampler_match", 0.7)])
def test_sampled_texts_of_a_compiled_target_too(rule, temperature, draft):
    target = model_of("qwen3", lean=True, static=None)
    given = {"rule": rule, "temperature": temperature}
    expected = [alone(target, one) for one in of_one_prompt(draft, **given)]
    assert len({tuple(text_of(steps)) for steps in expected}) == 4
    assert_same(together(target, of_one_prompt(draft, **given)), expected)


def test_a_round_is_one_pass_and_the_prompt_is_held_once(draft, held, monkeypatch):
    """The session never holds more columns than the prompt, the texts and the drafts of a round."""
    passes, feed = [], Session.feed

    def noted(self, tokens, parents, *layers):
        if self in held:
            passes.append(len(tokens))
        found = feed(self, tokens, parents, *layers)
        if self in held:
            columns.append(self._cache.length)
        return found

    columns: list[int] = []
    monkeypatch.setattr(Session, "feed", noted)
    prompt = LONG * 8
    found = together(plain("llama"), of_one_prompt(draft, prompt))
    assert len(passes) == max(map(len, found)) and passes[0] > 4
    written = sum(len(text_of(steps)) for steps in found)
    assert max(columns) <= len(prompt) + written + max(passes)
    assert held[0]._cache.capacity < 3 * len(prompt), "four copies would be more"


def test_a_text_begins_where_another_ends(draft, held):
    target = plain("mistral")
    expected = [alone(target, one) for one in of_one_prompt(draft)]
    held.clear()
    found, columns = [[] for _ in expected], []
    for index, step in decode_together(target, of_one_prompt(draft), places=2):
        found[index].append(step)
        columns.append(held[0]._cache.length)
    assert_same(found, expected)
    longest = sorted(len(text_of(steps)) for steps in expected)[-2:]
    drafted = 2 * (1 + max(len(step.tree) for steps in expected for step in steps))
    assert max(columns) <= len(PROMPT) + sum(longest) + drafted, "texts that have ended are left"
    assert len(held) == 1


def test_a_prompt_that_is_read_in_parts(draft, held):
    target = plain("llama")
    expected = [text_of(alone(target, one)) for one in of_one_prompt(draft)]
    held.clear()
    found = [[] for _ in expected]
    for index, step in decode_together(target, of_one_prompt(draft), budget=Budget(20, 8)):
        found[index].append(step)
    assert [text_of(steps) for steps in found] == expected
    assert len(held) > 1 and len({id(session) for session in held}) == 1


def test_texts_that_ask_more_of_a_session_have_their_own(draft, monkeypatch):
    target, opened = plain("llama"), []
    session = target.session
    monkeypatch.setattr(target, "session", lambda *given: opened.append(given) or session(*given))
    several = [replace(of_one_prompt(draft)[2], max_new_tokens=count) for count in (6, 9)]
    looking = built(LookaheadDrafter, Models(target))
    for other, sessions in (
        (replace(several[0], drafter=looking), 2),
        (replace(several[0], prompt=[*PROMPT, 5]), 1),
    ):
        opened.clear()
        together(target, [several[1], other])
        assert len(opened) == sessions


def test_rows_that_are_left_keep_what_they_see():
    """Two branches of three rows; one row of each is given up."""
    target = plain("llama")
    session, again = target.session(32), target.session(32)
    for each in (session, again):
        each.prefill(PROMPT[:9])
    session.feed([4, 5, 6, 7, 8, 9], [-1, 0, 0, -1, 3, 3])
    session.retain([0, 2, 3, 5])
    again.feed([4, 6, 7, 9], [-1, 0, -1, 2])
    rows = [1, 2], [1, 3]
    found, expected = session.feed(*rows)[0], again.feed(*rows)[0]
    assert (found - expected).abs().max() < 1e-5
    assert session._ancestors == again._ancestors and session._depths == again._depths
    assert found.shape == (2, VOCABULARY)


def test_a_branch_may_be_read_alone_and_in_several_calls():
    """As a text under a constraint does, which looks ahead and forgets what it saw."""
    target = plain("llama")
    own, other = (
        each.open(place, ()) for each in [sessions_of(target, 40, 2, (), 9)] for place in (0, 1)
    )
    usual = target.session(40)
    for each in (own, other, usual):
        each.prefill(PROMPT[:9])
    for tokens, parents, kept in (([4, 5], [-1, 0], [0]), ([6, 7], [-1, -1], [1]), ([8], [-1], [])):
        other.feed([9, 3], [-1, 0])
        other.commit([0, 1])
        found, expected = (each.feed(tokens, parents)[0] for each in (own, usual))
        assert (found - expected).abs().max() < 1e-5
        again = [each.feed([2], [len(tokens) - 1])[0] for each in (own, usual)]
        assert (again[0] - again[1]).abs().max() < 1e-5
        for each in (own, usual):
            each.commit(kept)
        assert own.length == usual.length and own.rows == 0
