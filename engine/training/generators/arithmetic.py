"""Worked arithmetic: bare sums, sums step by step, and short word problems."""

from __future__ import annotations

import random

from .words import FOODS, NAMES, THINGS, Vocabulary


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "sh", "ch")) else "s")


def bare(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    lines = []
    for _ in range(rng.randint(3, 10)):
        a, b, operator = rng.randint(0, 99), rng.randint(0, 99), rng.choice("+-*")
        if operator == "*":
            a, b = a % 13, b % 13
        if operator == "-":
            a, b = max(a, b), min(a, b)
        lines.append((f"{a} {operator} {b} =", str({"+": a + b, "-": a - b, "*": a * b}[operator])))
    first = lines[0]
    return f"Compute.\n{first[0]}", f" {first[1]}" + "".join(f"\n{q} {v}" for q, v in lines[1:])


def add_in_steps(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    a, b = rng.randint(10, 999), rng.randint(10, 999)
    width, carry, steps = max(len(str(a)), len(str(b))), 0, []
    for place in range(width):
        x, y = a // 10**place % 10, b // 10**place % 10
        total = x + y + carry
        shown = f"{x} + {y}" + (f" + {carry}" if carry else "")
        steps.append(f"{shown} = {total}, write {total % 10}, carry {total // 10}.")
        carry = total // 10
    return f"Add step by step: {a} + {b}\n", "\n".join(steps) + f"\nAnswer: {a + b}"


def count_up(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    start, step = rng.randint(0, 50), rng.randint(1, 10)
    values = [start + step * i for i in range(rng.randint(5, 14))]
    return f"Count from {values[0]} to {values[-1]} in steps of {step}:", " " + ", ".join(
        map(str, values)
    )


def table(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    a, rows = rng.randint(2, 15), rng.randint(5, 12)
    return f"Table of {a}, {rows} rows:\n", "\n".join(
        f"{a} x {i} = {a * i}" for i in range(1, rows + 1)
    )


def story(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    name, other = rng.sample(NAMES, 2)
    things = _plural(rng.choice(THINGS + FOODS))
    a, b, c = rng.randint(2, 40), rng.randint(2, 40), rng.randint(1, 9)
    if rng.random() < 0.4:
        question = f"{name} has {a} {things}. {other} gives {name} {b} more {things}. How many {things} does {name} have now?"
        answer = f"{name} starts with {a} {things}. {a} + {b} = {a + b}. {name} has {a + b} {things} now. The answer is {a + b}."
    elif rng.random() < 0.5:
        a += b
        question = f"{name} has {a} {things}. {name} gives {b} {things} to {other}. How many {things} does {name} have left?"
        answer = f"{name} starts with {a} {things}. {a} - {b} = {a - b}. {name} has {a - b} {things} left. The answer is {a - b}."
    else:
        a = a % 10 + 2
        question = f"{name} has {a} boxes. Each box holds {c} {things}. How many {things} does {name} have in all?"
        answer = f"There are {a} boxes with {c} {things} each. {a} * {c} = {a * c}. {name} has {a * c} {things} in all. The answer is {a * c}."
    return f"Question: {question}\nAnswer:", f" {answer}"


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return rng.choices([bare, add_in_steps, count_up, table, story], [2, 2, 1, 1.5, 4])[0](
        rng, vocabulary
    )
