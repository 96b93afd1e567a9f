"""Templates (frames) of Python functions with one or two arguments: conditions, loops over a range, short texts."""

from __future__ import annotations

import random

Frame = tuple[str, str, str]  # comment, signature, body
NUMBERS = ["n", "x", "value", "number", "k"]


def choice(rng: random.Random) -> Frame:
    x, k = rng.choice(NUMBERS), rng.randint(2, 30)
    small, large = rng.choice(
        [
            ("small", "large"),
            ("low", "high"),
            ("cold", "warm"),
            ("short", "long"),
            ("cheap", "dear"),
        ]
    )
    return rng.choice(
        [
            (
                f'Return "{large}" if {x} is greater than {k}, else "{small}".',
                f"{small}_or_{large}({x})",
                f'    if {x} > {k}:\n        return "{large}"\n    return "{small}"',
            ),
            (
                f"Return the absolute value of {x}.",
                f"absolute({x})",
                f"    if {x} < 0:\n        return -{x}\n    return {x}",
            ),
            (
                f"Return the sign of {x}.",
                f"sign({x})",
                f"    if {x} > 0:\n        return 1\n    if {x} < 0:\n        return -1\n    return 0",
            ),
            (
                f"Keep {x} between 0 and {k}.",
                f"clamp({x})",
                f"    return max(0, min({k}, {x}))",
            ),
            (
                f"Check whether {x} is between {k} and {k + 10}.",
                f"in_range({x})",
                f"    return {k} <= {x} <= {k + 10}",
            ),
        ]
    )


def two(rng: random.Random) -> Frame:
    a, b = rng.choice([("a", "b"), ("x", "y"), ("left", "right"), ("first", "second")])
    word, sign = rng.choice([("larger", ">"), ("smaller", "<")])
    return rng.choice(
        [
            (
                f"Return the {word} one of {a} and {b}.",
                f"{word}_one({a}, {b})",
                f"    if {a} {sign} {b}:\n        return {a}\n    return {b}",
            ),
            (f"Swap {a} and {b}.", f"swap({a}, {b})", f"    return {b}, {a}"),
            (
                f"Return the mean of {a} and {b}.",
                f"mean({a}, {b})",
                f"    return ({a} + {b}) / 2",
            ),
            (
                f"Return the distance of {a} and {b}.",
                f"distance({a}, {b})",
                f"    return abs({a} - {b})",
            ),
        ]
    )


def ranges(rng: random.Random) -> Frame:
    n, k = rng.choice(["n", "count", "limit"]), rng.randint(2, 12)
    return rng.choice(
        [
            (
                f"Return the sum of the numbers up to {n}.",
                f"sum_to({n})",
                f"    total = 0\n    for i in range(1, {n} + 1):\n        total += i\n    return total",
            ),
            (
                f"Return the first {n} squares.",
                f"squares({n})",
                f"    return [i * i for i in range({n})]",
            ),
            (
                f"Return the multiples of {k} up to {n}.",
                f"multiples_of_{k}({n})",
                f"    return [i for i in range(1, {n} + 1) if i % {k} == 0]",
            ),
            (
                f"Print the table of {k} with {n} rows.",
                f"print_table({n})",
                f'    for i in range(1, {n} + 1):\n        print(f"{k} x {{i}} = {{{k} * i}}")',
            ),
        ]
    )


def greeting(rng: random.Random) -> Frame:
    name = rng.choice(["name", "person", "friend"])
    word = rng.choice(["Hello", "Good morning", "Welcome", "Goodbye"])
    verb = word.lower().replace(" ", "_")
    return (
        f'Say "{word}" to the {name}.',
        f"say_{verb}({name})",
        f'    return f"{word}, {{{name}}}!"',
    )


FRAMES = [choice, two, ranges, greeting]
