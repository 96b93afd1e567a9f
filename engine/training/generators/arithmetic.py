"""Examples of arithmetic: lists of easy sums, larger sums worked column by column, and short word problems."""

from __future__ import annotations

import random

from engine.training.generators.column_sums import OPERATIONS, in_lines, value, worked
from engine.training.generators.words import FOODS, NAMES, THINGS, Vocabulary


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "sh", "ch")) else "s")


def easy_sum(rng: random.Random) -> tuple[int, str, int]:
    """A random easy sum (``is_easy``), as (number, operator, number)."""
    operator = rng.choice("++--*")
    if operator == "*":
        return rng.randint(0, 10), "*", rng.randint(0, 10)
    if rng.random() < 0.2:
        a, b = sorted((10 * rng.randint(1, 9), 10 * rng.randint(1, 9)), reverse=True)
        return (a, "-", b) if operator == "-" else (rng.choice([(a, "+", b), (b, "+", a)]))
    total = rng.randint(0, 20)
    part = rng.randint(0, total)
    return (total, "-", part) if operator == "-" else (part, "+", total - part)


def large_sum(rng: random.Random, operator: str | None = None) -> tuple[int, str, int]:
    """A random sum for column-by-column work, as (number, operator, number). Numbers have one to four digits; the
    second number of a product has one digit."""
    operator = operator or rng.choice("+++--*")
    a, b = (rng.randint(0, 10 ** rng.choice([1, 2, 2, 3, 3, 4]) - 1) for _ in range(2))
    if operator == "*":
        return max(a % 1000, 11), "*", rng.randint(2, 9)
    if operator == "-":
        a, b = max(a, b), min(a, b)
    return max(a, 10), operator, b


def bare(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    lines = []
    for _ in range(rng.randint(3, 10)):
        a, operator, b = easy_sum(rng)
        lines.append((f"{a} {operator} {b} =", str(value(a, operator, b))))
    first = lines[0]
    return f"Compute.\n{first[0]}", f" {first[1]}" + "".join(f"\n{q} {v}" for q, v in lines[1:])


def in_steps(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return stepwise(*large_sum(rng))


def stepwise(a: int, operator: str, b: int) -> tuple[str, str]:
    """The prompt and the answer of a sum worked step by step, with one line per column."""
    verb = OPERATIONS[operator][0]
    answer = f"{in_lines(a, operator, b)}\nAnswer: {value(a, operator, b)}"
    return f"{verb} step by step: {a} {operator} {b}\n", answer


def count_up(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    start, step = rng.randint(0, 50), rng.randint(1, 10)
    values = [start + step * i for i in range(rng.randint(5, 14))]
    return f"Count from {values[0]} to {values[-1]} in steps of {step}:", " " + ", ".join(
        map(str, values)
    )


def table(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    a, rows = rng.randint(2, 12), rng.randint(5, 12)
    return f"Table of {a}, {rows} rows:\n", "\n".join(
        f"{a} x {i} = {a * i}" for i in range(1, rows + 1)
    )


def _more(rng: random.Random, name: str, other: str, things: str) -> tuple[str, str, int]:
    a, b = rng.randint(2, 60), rng.randint(2, 40)
    clause = rng.choice(
        [
            f"{name} has {a} {things}. {other} gives {name} {b} more {things}.",
            f"{name} has {a} {things}. Then {name} finds {b} more {things}.",
            f"There are {a} {things} in the box. {name} puts {b} more {things} into the box.",
        ]
    )
    who, ask = ("The box", "does the box have") if "box" in clause else (name, f"does {name} have")
    answer = f"{who} starts with {a} {things}. {worked(a, '+', b)}. {who} has {a + b} {things} now."
    return f"{clause} How many {things} {ask} now?", answer, a + b


def _fewer(rng: random.Random, name: str, other: str, things: str) -> tuple[str, str, int]:
    b, left = rng.randint(2, 40), rng.randint(2, 50)
    a = b + left
    clause = rng.choice(
        [f"gives {b} {things} to {other}", f"loses {b} {things}", f"sells {b} {things}"]
    )
    question = f"{name} has {a} {things}. {name} {clause}. How many {things} does {name} have left?"
    answer = (
        f"{name} starts with {a} {things}. {worked(a, '-', b)}. {name} has {left} {things} left."
    )
    return question, answer, left


def _boxes(rng: random.Random, name: str, other: str, things: str) -> tuple[str, str, int]:
    holder = rng.choice(["box", "bag", "basket", "jar"])
    holders = _plural(holder)
    a, b = rng.choice([rng.randint(2, 10), rng.randint(11, 30)]), rng.randint(2, 9)
    question = (
        f"{name} has {a} {holders}. Each {holder} holds {b} {things}. "
        f"How many {things} does {name} have in all?"
    )
    answer = (
        f"There are {a} {holders} with {b} {things} each. {worked(a, '*', b)}. "
        f"{name} has {a * b} {things} in all."
    )
    return question, answer, a * b


def story(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    name, other = rng.sample(NAMES, 2)
    things = _plural(rng.choice(THINGS + FOODS))
    kind = rng.choices([_more, _fewer, _boxes], [4, 3, 3])[0]
    question, answer, result = kind(rng, name, other, things)
    return f"Question: {question}\nAnswer:", f" {answer} The answer is {result}."


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return rng.choices([bare, in_steps, count_up, table, story], [2, 4, 1, 1, 4])[0](
        rng, vocabulary
    )
