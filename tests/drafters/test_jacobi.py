"""The window of guesses: the target makes them, and the window moves along with the text."""

from dataclasses import replace
from itertools import pairwise

import pytest

from engine.core.exhibits import Token
from engine.core.sampling import Sampling
from engine.methods.jacobi.drafter import JacobiDrafter
from engine.rules import verifier
from tests.drafters.writing import built, steps_of, text_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

KEY, WINDOW = "jacobi", 5
PROMPT = (1, 2, 0, 1, 2)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_guesses_are_the_choices_of_the_last_pass(sampling):
    steps = steps_of(shared_models(16), KEY, [3, 5, 7], 30, sampling, window=WINDOW)
    for before, step in pairwise(steps):
        kept = len(before.verdict.accepted)
        choices = before.logits.argmax(-1).tolist()[kept + 1 :]
        assert step.tree.tokens[: len(choices)] == choices[: len(step.tree)]
        fresh = step.tree.sources.count("first guess")
        assert fresh == max(len(step.tree) - len(choices), 0)


def test_a_window_of_right_guesses_is_kept_whole():
    """A fixed point: the target changes nothing, and the step writes the window plus one token."""
    models, prompt = shared_models(16), [3, 5, 7]
    truth = text_of(steps_of(models, "none", prompt, 30))

    class Told(JacobiDrafter):
        def _first_guess(self, root):
            return truth[self._first + len(self._window) - len(prompt)]

    steps = steps_of(models, Told, prompt, 12, window=WINDOW)
    assert [len(step.output) for step in steps] == [6, 6]


def test_the_table_follows_each_place_through_the_passes():
    steps = steps_of(shared_models(16), KEY, [3, 5, 7], 30, window=WINDOW)
    history: dict[int, list[int]] = {}
    for step in steps:
        if len(step.tree) < WINDOW:  # at the end of the text not all places are looked at
            break
        (table,) = step.tree.exhibits
        for row in table.rows:
            position, latest, calm = row[0], row[1].id, row[-1]
            guesses = history.setdefault(position, [])
            guesses.append(latest)
            shown = [cell.id for cell in row[1:-1] if isinstance(cell, Token)]
            assert shown == guesses[::-1][: len(shown)] and len(shown) == min(len(guesses), 4)
            others = [age for age, guess in enumerate(guesses[::-1]) if guess != latest]
            assert calm == min(others, default=len(guesses)) - 1
    assert len(history) > 20


@pytest.mark.parametrize(
    "fill, known", [("prompt", {3, 5, 7}), ("vocabulary", {*range(16)}), ("repeat", {7})]
)
def test_the_first_guesses_of_a_text(fill, known):
    first, again = (
        steps_of(shared_models(16), KEY, [3, 5, 7], 30, window=8, fill=fill)[0] for _ in range(2)
    )
    assert first.tree.tokens == again.tree.tokens and set(first.tree.tokens) <= known


class CallsItselfDrawn(JacobiDrafter):
    """A fault: the target's likeliest token is declared as a draw from its p."""

    def observe(self, kept):
        super().observe(kept)
        self._p = kept.logits[-1].softmax(-1)

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        if hasattr(self, "_p"):
            tree.laws.append(self._p)
            for parent, draws in tree.draws.items():
                tree.draws[parent] = [replace(draw, kind="iid", law=0) for draw in draws]
        return tree


def test_a_planted_bias_is_caught():
    models, sampling = remembered_models(4), Sampling(1.0)

    def error(cls):
        rule = verifier("rejection")
        return step_error(models, lambda: built(cls, models), rule, sampling, PROMPT, 2)

    assert error(JacobiDrafter) < 1e-5
    assert error(CallsItselfDrawn) > 1e-3
