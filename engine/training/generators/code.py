"""Small Python functions from frames (``functions.toml``): the names, the operators and the wording vary, the code is always
right."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from pathlib import Path
from string import Template

from engine.training.generators.words import Vocabulary, is_held_out


@cache
def _groups() -> list[dict]:
    return tomllib.loads(Path(__file__).with_name("functions.toml").read_text("utf-8"))["group"]


def _function(rng: random.Random) -> tuple[str, str]:
    """(comment and signature, the rest)"""
    group = rng.choices(_groups(), [group["weight"] for group in _groups()])[0]
    slots: dict[str, str] = {}
    for names, values in group["slots"].items():
        row = _row(rng, values)
        slots |= {
            name: Template(value).substitute(slots)
            for name, value in zip(names.split(), row, strict=True)
        }
    frame = rng.choice(group["frames"].strip().split("\n\n"))
    comment, signature, body = Template(frame).substitute(slots).split("\n", 2)
    return f"{comment}\n{signature}", f"\n{body}"


def _row(rng: random.Random, values: str | list) -> list[str]:
    """One value for each name. values: a list of them, or the first and the last of whole numbers, such as "2-20"."""
    if isinstance(values, str):
        return [str(rng.randint(*map(int, values.split("-"))))]
    row = rng.choice(values)
    return [row] if isinstance(row, str) else row


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    """A comment that says what to do, and the function; sometimes other functions come before it in the file.

    The prompt ends before the line break, because the tokenizer joins the break with the indent.
    """
    head, body = _function(rng)
    before = []
    for _ in range(rng.choices([0, 1, 2], [5, 2, 1])[0]):
        other, rest = _function(rng)
        if not is_held_out(other):
            before.append(f"{other}{rest}\n\n\n")
    if is_held_out(head):  # held out wherever it stands
        before = []
    return "".join(before) + head, body
