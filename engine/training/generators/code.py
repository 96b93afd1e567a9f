"""Examples of code: small Python functions made from templates (frames). Names, operators and wording vary; the code
is always right."""

from __future__ import annotations

import random

from engine.training.generators import conditions, containers
from engine.training.generators.words import Vocabulary, is_held_out

LISTS = ["numbers", "values", "items", "data", "scores", "prices", "ages", "sizes"]
ITEMS = ["x", "n", "value", "item", "v"]
PAIRS = [("a", "b"), ("x", "y"), ("left", "right"), ("first", "second"), ("m", "n")]
OPERATORS = {
    "+": ("add", "sum"),
    "-": ("subtract", "difference"),
    "*": ("multiply", "product"),
    "/": ("divide", "quotient"),
}
TESTS = {
    "even": "{0} % 2 == 0",
    "odd": "{0} % 2 == 1",
    "positive": "{0} > 0",
    "negative": "{0} < 0",
    "greater than {1}": "{0} > {1}",
    "smaller than {1}": "{0} < {1}",
    "divisible by {1}": "{0} % {1} == 0",
}
MAPS = {
    "squared": "{0} * {0}",
    "doubled": "{0} * 2",
    "halved": "{0} / 2",
    "increased by {1}": "{0} + {1}",
    "times {1}": "{0} * {1}",
    "as text": "str({0})",
}
SHAPES = {
    "rectangle": ("width, height", "width * height", "2 * (width + height)"),
    "square": ("side", "side * side", "4 * side"),
    "circle": ("radius", "3.14159 * radius ** 2", "2 * 3.14159 * radius"),
}


def pair(rng: random.Random) -> tuple[str, str, str]:
    a, b = rng.choice(PAIRS)
    operator, (verb, noun) = rng.choice(sorted(OPERATORS.items()))
    return (
        f"Return the {noun} of {a} and {b}.",
        f"{verb}({a}, {b})",
        f"    return {a} {operator} {b}",
    )


def keep(rng: random.Random) -> tuple[str, str, str]:
    items, item, k = rng.choice(LISTS), rng.choice(ITEMS), rng.randint(2, 20)
    word, test = rng.choice(sorted(TESTS.items()))
    test, word = test.format(item, k), word.format(item, k)
    name = word.split()[0]
    if rng.random() < 0.5:
        return (
            f"Keep the {items} that are {word}.",
            f"keep_{name}({items})",
            f"    return [{item} for {item} in {items} if {test}]",
        )
    return (
        f"Count the {items} that are {word}.",
        f"count_{name}({items})",
        f"    count = 0\n    for {item} in {items}:\n        if {test}:\n            count += 1\n    return count",
    )


def each(rng: random.Random) -> tuple[str, str, str]:
    items, item, k = rng.choice(LISTS), rng.choice(ITEMS), rng.randint(2, 20)
    word, value = rng.choice(sorted(MAPS.items()))
    value, word = value.format(item, k), word.format(item, k)
    name = word.split()[-1] if not word.split()[-1].isdigit() else word.split()[0]
    if rng.random() < 0.5:
        body = f"    return [{value} for {item} in {items}]"
    else:
        body = f"    result = []\n    for {item} in {items}:\n        result.append({value})\n    return result"
    return f"Return all {items} {word}.", f"{name}_{items}({items})", body


def fold(rng: random.Random) -> tuple[str, str, str]:
    items, item = rng.choice(LISTS), rng.choice(ITEMS)
    word, start, step = rng.choice(
        [
            ("sum", "0", f"total += {item}"),
            ("product", "1", f"total *= {item}"),
            ("maximum", f"{items}[0]", f"if {item} > total:\n            total = {item}"),
            ("minimum", f"{items}[0]", f"if {item} < total:\n            total = {item}"),
        ]
    )
    body = f"    total = {start}\n    for {item} in {items}:\n        {step}\n    return total"
    return f"Return the {word} of the {items}.", f"{word}_of_{items}({items})", body


def shape(rng: random.Random) -> tuple[str, str, str]:
    kind = rng.choice(sorted(SHAPES))
    arguments, area, around = SHAPES[kind]
    word, value = rng.choice([("area", area), ("perimeter", around)])
    return f"Return the {word} of a {kind}.", f"{kind}_{word}({arguments})", f"    return {value}"


def recursive(rng: random.Random) -> tuple[str, str, str]:
    n = rng.choice(["n", "k", "x"])
    return rng.choice(
        [
            (
                f"Return the factorial of {n}.",
                f"factorial({n})",
                f"    if {n} <= 1:\n        return 1\n    return {n} * factorial({n} - 1)",
            ),
            (
                f"Return the {n}-th Fibonacci number.",
                f"fibonacci({n})",
                f"    if {n} < 2:\n        return {n}\n    return fibonacci({n} - 1) + fibonacci({n} - 2)",
            ),
            (
                f"Check whether {n} is prime.",
                f"is_prime({n})",
                f"    if {n} < 2:\n        return False\n    for i in range(2, {n}):\n        if {n} % i == 0:\n            return False\n    return True",
            ),
            (
                f"Count down from {n}.",
                f"count_down({n})",
                f"    while {n} > 0:\n        print({n})\n        {n} -= 1",
            ),
        ]
    )


def text(rng: random.Random) -> tuple[str, str, str]:
    s = rng.choice(["text", "word", "s", "line", "name"])
    return rng.choice(
        [
            (f"Return the {s} reversed.", f"reverse_{s}({s})", f"    return {s}[::-1]"),
            (
                f"Check whether the {s} is a palindrome.",
                f"is_palindrome({s})",
                f"    return {s} == {s}[::-1]",
            ),
            (
                f"Count the vowels in the {s}.",
                f"count_vowels({s})",
                f'    count = 0\n    for letter in {s}:\n        if letter in "aeiou":\n            count += 1\n    return count',
            ),
            (f"Return the {s} in upper case.", f"upper_{s}({s})", f"    return {s}.upper()"),
            (f"Return the first letter of the {s}.", f"first_letter({s})", f"    return {s}[0]"),
            (
                f"Count how often each letter stands in the {s}.",
                f"count_letters({s})",
                f"    counts = {{}}\n    for letter in {s}:\n        counts[letter] = counts.get(letter, 0) + 1\n    return counts",
            ),
        ]
    )


FRAMES = [pair, keep, each, fold, shape, recursive, text, *conditions.FRAMES, *containers.FRAMES]
WEIGHTS = [2, 5, 5, 3, 1, 1, 1, 2, 1, 1, 0.5, 2, 1, 1.5]


def _function(rng: random.Random) -> tuple[str, str]:
    """A random function, split into its comment with signature, and its body."""
    comment, signature, body = rng.choices(FRAMES, WEIGHTS)[0](rng)
    return f"# {comment}\ndef {signature}:", f"\n{body}"


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    """An example whose prompt is a comment and a signature, and whose answer is the body of the function. Sometimes
    the prompt has other, complete functions before the comment.

    The prompt ends before the line break, because the tokenizer joins a line break and the indent after it into one
    token.
    """
    head, body = _function(rng)
    before = []
    for _ in range(rng.choices([0, 1, 2], [5, 2, 1])[0]):
        signature, rest = _function(rng)
        if not is_held_out(signature):
            before.append(f"{signature}{rest}\n\n\n")
    if is_held_out(head):  # without other functions before it, the example is held out, too
        before = []
    return "".join(before) + head, body
