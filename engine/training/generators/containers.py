"""Templates (frames) of Python functions on lists and dictionaries."""

from __future__ import annotations

import random

Frame = tuple[str, str, str]  # comment, signature, body
LISTS = ["numbers", "values", "items", "words", "names", "scores", "prices"]
RECORDS = ["ages", "prices", "counts", "points", "sizes"]


def whole_list(rng: random.Random) -> Frame:
    items, k = rng.choice(LISTS), rng.randint(2, 9)
    frames = {
        f"Return the {items} in order.": (f"sort_{items}", f"sorted({items})"),
        f"Return the {items} in reverse.": (f"reverse_{items}", f"{items}[::-1]"),
        f"Return the first {k} {items}.": (f"first_{items}", f"{items}[:{k}]"),
        f"Return the last {k} {items}.": (f"last_{items}", f"{items}[-{k}:]"),
        f"Return every {items[:-1]} once.": (f"unique_{items}", f"sorted(set({items}))"),
        f"Return the number of {items}.": (f"count_{items}", f"len({items})"),
        f"Join the {items} with commas.": (f"join_{items}", f'", ".join({items})'),
        f"Return the mean of the {items}.": (f"mean_of_{items}", f"sum({items}) / len({items})"),
    }
    comment = rng.choice(sorted(frames))
    name, value = frames[comment]
    return comment, f"{name}({items})", f"    return {value}"


def search(rng: random.Random) -> Frame:
    items, wanted = rng.choice(LISTS), rng.choice(["wanted", "target", "x"])
    return rng.choice(
        [
            (
                f"Check whether {wanted} is in the {items}.",
                f"contains({items}, {wanted})",
                f"    for item in {items}:\n        if item == {wanted}:\n            return True\n    return False",
            ),
            (
                f"Return where {wanted} stands in the {items}.",
                f"find({items}, {wanted})",
                f"    for i, item in enumerate({items}):\n        if item == {wanted}:\n            return i\n    return -1",
            ),
            (
                f"Count how often {wanted} is in the {items}.",
                f"count({items}, {wanted})",
                f"    count = 0\n    for item in {items}:\n        if item == {wanted}:\n            count += 1\n    return count",
            ),
            (
                f"Remove {wanted} from the {items}.",
                f"remove({items}, {wanted})",
                f"    return [item for item in {items} if item != {wanted}]",
            ),
        ]
    )


def dictionary(rng: random.Random) -> Frame:
    records, k = rng.choice(RECORDS), rng.randint(2, 40)
    key = rng.choice(["name", "key", "word"])
    return rng.choice(
        [
            (
                f"Return the {records} that are greater than {k}.",
                f"large_{records}({records})",
                f"    return {{{key}: value for {key}, value in {records}.items() if value > {k}}}",
            ),
            (
                f"Return the {key} with the largest of the {records}.",
                f"largest_of_{records}({records})",
                f"    best = None\n    for {key} in {records}:\n        if best is None or {records}[{key}] > {records}[best]:\n            best = {key}\n    return best",
            ),
            (
                f"Print each {key} and its value in the {records}.",
                f"print_{records}({records})",
                f'    for {key}, value in {records}.items():\n        print(f"{{{key}}}: {{value}}")',
            ),
            (
                f"Add {k} to all {records}.",
                f"add_to_{records}({records})",
                f"    for {key} in {records}:\n        {records}[{key}] += {k}\n    return {records}",
            ),
            (
                f"Return the sum of the {records} by {key}.",
                f"sum_of_{records}({records})",
                f"    return sum({records}.values())",
            ),
        ]
    )


FRAMES = [whole_list, search, dictionary]
