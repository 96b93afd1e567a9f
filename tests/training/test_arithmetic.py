"""The sums are right: every equation and every answer in the generated text is computed again."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from engine.training.generators import arithmetic, examples
from engine.training.generators import column_sums as columns
from engine.training.generators.words import Vocabulary

EQUATION = re.compile(r"(?<![\d\w])(\d+(?: [-+*x] \d+)+) = (\d+)")


def check_equations(text: str) -> int:
    found = EQUATION.findall(text)
    for left, right in found:
        assert eval(left.replace("x", "*")) == int(right), (
            left,
            right,
        )  # digits and operators only
    return len(found)


def test_every_equation_holds():
    texts = [
        e.text
        for w in ("arithmetic", "chat")
        for e in itertools.islice(examples(w, 9, Vocabulary()), 300)
    ]
    assert sum(map(check_equations, texts)) > 1000


@pytest.mark.parametrize("operator", "+-*")
def test_columns_lead_to_the_result(operator):
    rng = random.Random(operator)
    for _ in range(200):
        a, _, b = arithmetic.large_sum(rng, operator)
        *steps, named = columns.column_steps(a, operator, b)
        written = [step.split("write ")[1].split(",")[0] for step in steps]
        digits = re.findall(r"\d", named)
        assert digits == written[::-1], "the digits in reading order"
        assert int("".join(digits)) == eval(f"{a} {operator} {b}")


def test_answers_end_in_the_result():
    rng = random.Random(4)
    for _ in range(200):
        prompt, answer = arithmetic.in_steps(rng, Vocabulary())
        assert int(answer.rsplit("Answer: ", 1)[1]) == eval(prompt.split(": ")[1])
        prompt, answer = arithmetic.story(rng, Vocabulary())
        first, second, *_ = map(int, re.findall(r"\d+", prompt))
        result = int(re.search(r"The answer is (\d+)\.$", answer)[1])
        assert result in (first + second, first - second, first * second)
        assert f"= {result}. " in answer


def test_sums_in_bare_form_are_easy():
    rng = random.Random(5)
    for _ in range(300):
        a, operator, b = arithmetic.easy_sum(rng)
        assert columns.is_easy(a, operator, b) and columns.value(a, operator, b) >= 0
