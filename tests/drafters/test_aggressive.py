"""The pointer into the input: copying, bifurcations, and finding the place again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.methods.shared.input_pointer import InputPointer
from tests.drafters.writing import steps_of
from tests.verifiers.tiny import shared_models

KEY = "aggressive"


def after(tokens, output):
    pointer = InputPointer(tokens)
    for token in output:
        pointer.follow(token)
    return pointer


def test_the_pointer_walks_while_output_and_input_agree():
    pointer = after([1, 2, 3, 4], [1, 2])
    assert pointer.rest(9) == [3, 4] and pointer.bifurcations == 0 and pointer.suffix == []


def test_it_goes_on_behind_a_replaced_word():
    """Input a b c d, output a X c: c occurs once in the input."""
    pointer = after([1, 2, 3, 4], [1, 9])
    assert pointer.place is None and pointer.rest(9) == [] and pointer.bifurcations == 1
    pointer.follow(3)
    assert pointer.rest(9) == [4] and pointer.suffix == [3] and pointer.bifurcations == 1


def test_a_token_that_stands_twice_is_no_place():
    """Input a b a c, output X a: "a" occurs twice in the input, "X a" not at all."""
    assert after([1, 2, 1, 3], [9, 1]).place is None


def test_the_token_before_it_may_decide():
    """Input a b e c b f a, output X a b: "b" occurs twice, "a b" once."""
    pointer = after([1, 2, 5, 3, 2, 6, 1], [9, 1, 2])
    assert pointer.suffix == [1, 2] and pointer.rest(9) == [5, 3, 2, 6, 1]


def test_the_end_of_the_input_is_no_bifurcation():
    pointer = after([1, 2], [1, 2])
    assert pointer.rest(9) == []
    pointer.follow(7)
    assert pointer.place is None and pointer.bifurcations == 0


@settings(max_examples=200, deadline=None)
@given(
    tokens=st.lists(st.integers(0, 3), max_size=12),
    output=st.lists(st.integers(0, 3), min_size=1, max_size=8),
)
def test_the_place_against_a_search(tokens, output):
    pointer = InputPointer(tokens)
    for count, token in enumerate(output, start=1):
        before = pointer.place
        pointer.follow(token)
        if before is not None and tokens[before : before + 1] == [token]:
            assert pointer.place == before + 1
        else:
            assert pointer.place == searched(tokens, output[:count])


def searched(tokens, output):
    """Return the place after the only occurrence of the shortest suffix that occurs only once."""
    for size in range(1, len(output) + 1):
        ends = range(size, len(tokens) + 1)
        found = [end for end in ends if tokens[end - size : end] == output[-size:]]
        if len(found) == 1:
            return found[0]
    return None


@pytest.mark.parametrize("skip", [0, 2])
def test_drafts_are_the_input_from_the_pointer_on(skip):
    models, prompt = shared_models(16), [3, 5, 7, 2, 9, 11, 4, 1, 8, 13]
    steps = steps_of(models, KEY, prompt, 30, length=3, skip=skip)
    assert steps[0].tree.tokens == prompt[skip : skip + 3]
    written = []
    for step in steps:
        place = after(prompt[skip:], written).place
        expected = [] if place is None else prompt[skip:][place : place + 3]
        assert step.tree.tokens == expected[: len(step.tree)]
        room = len(prompt) + 30 - step.position - 1
        assert len(step.tree) == min(len(expected), room)
        written += step.output
