"""The suffix automaton against a search, and the drafts that are read off it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.memory import Memory
from engine.methods.shared.suffix_automaton import START, WALK, Match, SuffixAutomaton
from engine.methods.shared.suffix_copies import EarlierTexts
from engine.parts.loading import Models
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.test_constraint import PROMPT, Cycle
from tests.engine.tiny import tiny_model
from tests.verifiers.tiny import shared_models

KEY = "suffix"
TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=14), min_size=1, max_size=3)


def automaton_of(texts):
    made = SuffixAutomaton()
    for text in texts:
        made.separate()
        made.read(text)
    return made


def occurrences(texts, run):
    return sum(
        text[i : i + len(run)] == run for text in texts for i in range(len(text) - len(run) + 1)
    )


def state_of(automaton, run):
    state = START
    for token in run:
        state = automaton.followers(state).get(token)
        if state is None:
            return None
    return state


@settings(max_examples=300, deadline=None)
@given(texts=TEXTS, run=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_every_run_is_found_and_counted(texts, run):
    state = state_of(made := automaton_of(texts), run)
    assert (0 if state is None else made.count[state]) == occurrences(texts, run)
    assert len(made) <= 2 * max(1, sum(map(len, texts))) + 1
    assert made.transitions == sum(map(len, made.next))


@settings(max_examples=200, deadline=None)
@given(texts=TEXTS, context=st.lists(st.integers(0, 2), max_size=12))
def test_the_longest_match_of_a_context(texts, context):
    automaton, match = automaton_of(texts), Match(START, 0)
    for count, token in enumerate(context, start=1):
        match = automaton.follow(match, token)
        ends = (context[count - size : count] for size in range(count, 0, -1))
        longest = next((run for run in ends if occurrences(texts, run)), [])
        assert match.length == len(longest)
        assert match.state == state_of(automaton, longest)


@settings(max_examples=200, deadline=None)
@given(text=st.lists(st.integers(0, 2), min_size=1, max_size=16))
def test_the_longest_repeated_end_of_a_text(text):
    automaton = automaton_of([text])
    ends = [text[-size:] for size in range(len(text), 0, -1)]
    longest = next((run for run in ends if occurrences([text], run) > 1), [])
    assert automaton.repeated().length == len(longest)
    lengths = [match.length for match in automaton.shorter(automaton.repeated())]
    assert lengths == sorted(set(lengths), reverse=True)


def test_a_text_of_one_token_costs_no_more_than_any_other():
    """Each state links to the one before it; counting stops after WALK of these links."""
    automaton = automaton_of([[5] * 2000])
    assert automaton.count[state_of(automaton, [5] * 2000)] == 1
    assert automaton.count[state_of(automaton, [5] * (2000 - WALK))] >= WALK


def test_the_longer_the_match_the_more_is_drafted():
    """After "1 2" the next ten tokens are known; the match pays for two of them."""
    text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    steps = steps_of(shared_models(16), KEY, text, 1, budget=16, factor=1.0, offset=0)
    assert steps[0].tree.tokens == []  # one new token leaves no room for a draft
    steps = steps_of(shared_models(16), KEY, text, 30, budget=16, factor=1.0, offset=0)
    assert steps[0].tree.tokens == [3, 4]
    steps = steps_of(shared_models(16), KEY, text, 30, budget=16, factor=3.0, offset=0)
    assert steps[0].tree.tokens == [3, 4, 5, 6, 7, 8]


def test_branches_stand_in_the_order_of_their_counts():
    text = [1, 7, 1, 8, 1, 8, 1]
    tree = steps_of(shared_models(16), KEY, text, 30, budget=2, factor=8.0)[0].tree
    assert [tree.tokens[child] for child in tree.children(-1)] == [8]
    tree = steps_of(shared_models(16), KEY, text, 30, budget=8, least_chance=0.1)[0].tree
    assert [tree.tokens[child] for child in tree.children(-1)] == [8, 7]
    assert [tree.q[child] for child in tree.children(-1)] == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    ]


def test_no_node_below_the_least_chance():
    text = [1, 7, 1, 8, 1, 8, 1]
    tree = steps_of(shared_models(16), KEY, text, 30, budget=8, factor=8.0, least_chance=0.5)[
        0
    ].tree
    assert [tree.tokens[child] for child in tree.children(-1)] == [8]


def test_a_text_written_before_is_drafted_again():
    models, memory, prompt = shared_models(16), Memory(), [3, 5, 7]
    first = steps_of(models, KEY, prompt, 40, memory=memory, budget=16, factor=4.0)
    again = steps_of(models, KEY, prompt, 40, memory=memory, budget=16, factor=4.0)
    alone = steps_of(
        models, KEY, prompt, 40, memory=memory, budget=16, factor=4.0, earlier_texts=False
    )
    assert text_of(first) == text_of(again) == text_of(alone)
    assert len(again) < len(alone) == len(first)
    sources = {source for step in again for source in step.tree.sources}
    assert "earlier texts" in sources
    memory.reset()
    assert len(steps_of(models, KEY, prompt, 40, memory=memory, budget=16, factor=4.0)) == len(
        first
    )


@pytest.mark.parametrize("count", range(24, 34))
def test_a_text_is_remembered_with_its_forced_tokens(count):
    """At some of these lengths the last step has room for nothing but forced tokens: what follows is forgotten."""
    models = Models(tiny_model())
    made = built(KEY, models)
    steps = steps_of(models, made, PROMPT, count, constraint=Cycle())
    assert any("forced" in step.tree.sources for step in steps)
    (stored,) = made._earlier._texts
    text = text_of(steps)
    assert stored == text[: len(stored)] and len(stored) >= count - len(steps[-1].output)


def test_the_oldest_texts_are_forgotten():
    store = EarlierTexts(most_bytes=60_000)
    for start in range(60):
        store.add([start * 20 + token for token in range(20)])
        assert store.nbytes <= 60_000
    assert state_of(store.automaton, [59 * 20, 59 * 20 + 1]) is not None
    assert state_of(store.automaton, [0, 1]) is None
