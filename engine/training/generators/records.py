"""Examples of templated text: JSON records, forms, tables, letters and lists, in which most of a line repeats the line
before."""

from __future__ import annotations

import json
import random

from engine.training.generators.words import (
    ADJECTIVES,
    ANIMALS,
    CITIES,
    COLOURS,
    DAYS,
    DRINKS,
    FOODS,
    JOBS,
    MONTHS,
    NAMES,
    PLACES,
    THINGS,
    VERBS,
    Vocabulary,
    with_article,
)

FIELDS = {
    "name": NAMES,
    "city": CITIES,
    "colour": COLOURS,
    "animal": ANIMALS,
    "food": FOODS,
    "place": PLACES,
    "age": range(3, 90),
    "price": range(1, 100),
    "count": range(1, 50),
    "active": [True, False],
    "thing": THINGS,
    "job": JOBS,
    "drink": DRINKS,
    "day": DAYS,
    "month": MONTHS,
    "size": ["small", "medium", "large"],
    "weight": range(1, 200),
}


def _keys(rng: random.Random, low: int = 2, high: int = 5) -> list[str]:
    return rng.sample(sorted(FIELDS), rng.randint(low, high))


def _record(rng: random.Random, keys: list[str]) -> dict:
    return {key: rng.choice(FIELDS[key]) for key in keys}


def json_lines(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    keys, count = _keys(rng), rng.randint(3, 8)
    lines = [json.dumps({"id": i, **_record(rng, keys)}) for i in range(1, count + 1)]
    return f"Write {count} JSON records with id, {', '.join(keys)}.\n", "\n".join(lines)


def json_indented(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    record = _record(rng, _keys(rng))
    details = ", ".join(f"{key} = {json.dumps(value)}" for key, value in record.items())
    return f"JSON: {details}\n", json.dumps(record, indent=2)


def form(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    record = _record(rng, _keys(rng, 3, 6))
    details = ", ".join(str(value) for value in record.values())
    return f"Form with {', '.join(record)}: {details}\n", "\n".join(
        f"{k.capitalize()}: {v}" for k, v in record.items()
    )


def table(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    keys, rows = _keys(rng, 2, 4), rng.randint(3, 6)
    lines = [" | ".join(str(v) for v in _record(rng, keys).values()) for _ in range(rows)]
    return f"Table with {rows} rows: {', '.join(keys)}\n", "\n".join(
        [" | ".join(keys), " | ".join("---" for _ in keys), *lines]
    )


def diary(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    name, kind = rng.choice(NAMES), rng.choice([FOODS, THINGS, ANIMALS])
    verb, place = rng.choice(VERBS), rng.choice(PLACES)
    lines = [
        f"{day}: {name} {verb} {with_article(rng.choice(ADJECTIVES))} {rng.choice(kind)} in the {place}."
        for day in DAYS
    ]
    return f"Diary of {name}, one line a day.\n{lines[0]}\n", "\n".join(
        lines[1 : rng.randint(4, 7)]
    )


def letter(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    name, other = rng.sample(NAMES, 2)
    thing, colour, place, day = (rng.choice(x) for x in (THINGS, COLOURS, PLACES, DAYS))
    return (
        f"Letter from {name} to {other} about {with_article(colour)} {thing}.\n",
        (
            f"Dear {other},\n\nthank you for the {colour} {thing}. I like the {colour} {thing} very much. "
            f"Please come to the {place} on {day}, and bring your {thing} too.\n\nYour friend,\n{name}"
        ),
    )


def steps(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    food, parts = rng.choice(FOODS), rng.sample(FOODS, rng.randint(3, 5))
    lines = [f"Step {i}: Add the {part} and stir." for i, part in enumerate(parts, 1)]
    return (
        f"Recipe for {food} salad with {', '.join(parts)}.\n",
        "\n".join([*lines, f"Step {len(parts) + 1}: Put the {food} on top and serve."]),
    )


def prices(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    """An example of a bill: the items and prices of the prompt, one per line, then the number of items."""
    items = rng.sample(FOODS, rng.randint(2, 6))
    costs = [rng.randint(1, 9) for _ in items]
    details = ", ".join(f"{item} {cost}" for item, cost in zip(items, costs, strict=True))
    lines = [f"1 {item}: {cost} coins" for item, cost in zip(items, costs, strict=True)]
    return f"Bill for {details}.\n", "\n".join([*lines, f"Items: {len(items)}"])


def csv_lines(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    keys, rows = _keys(rng, 2, 4), rng.randint(3, 7)
    lines = [",".join(str(v) for v in _record(rng, keys).values()) for _ in range(rows)]
    return f"CSV with {rows} rows: {', '.join(keys)}\n", "\n".join([",".join(keys), *lines])


def invitation(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    name, other = rng.sample(NAMES, 2)
    day, place, food, hour = (rng.choice(x) for x in (DAYS, PLACES, FOODS, range(1, 12)))
    return (
        f"Invitation from {name} to {other}: {day}, {hour}, {place}.\n",
        (
            f"Dear {other},\n\nplease come to my party on {day} at {hour}. It is in the {place}. "
            f"There will be {food} and games.\n\nSee you on {day},\n{name}"
        ),
    )


KINDS = [
    json_lines,
    json_indented,
    form,
    table,
    diary,
    letter,
    steps,
    prices,
    csv_lines,
    invitation,
]
WEIGHTS = [4, 2, 2, 2, 2, 1, 1.5, 1, 1, 1]


def make(rng: random.Random, vocabulary: Vocabulary) -> tuple[str, str]:
    return rng.choices(KINDS, WEIGHTS)[0](rng, vocabulary)
