"""The prompts of a tuning: a random sample of the prompts in a file, which may be much larger than memory, or of
prompts that are given as objects.

A file is JSONL (each object has a ``prompt`` or ``text``, and perhaps a ``kind`` or ``category``), CSV with columns of
these names, or plain text with one prompt per line. It is read once, line by line. A reservoir (Vitter, Random
Sampling with a Reservoir, 1985) gives every prompt the same chance to be in the sample.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from engine.errors import UserError
from engine.text_file import ENCODING

SAMPLED = 48
LONGEST_LINE = 1_000_000
"""The most characters of a line. A longer line raises UserError before it is read to its end."""
MOST_KINDS, KIND_LENGTH = 32, 40
OTHER = "other"
"""The kind of all prompts that name no kind, and of prompts of further kinds once there are nearly ``MOST_KINDS``
kinds."""


@dataclass(frozen=True)
class PromptText:
    text: str
    kind: str = OTHER


@dataclass(frozen=True)
class Sample:
    """A random sample of prompts. given: the number of prompts from which the sample was drawn. empty: how many of
    these have no text. prompts: the sample, in an order in which the kinds take turns, so that also its first few
    prompts are of different kinds."""

    prompts: tuple[PromptText, ...]
    given: int
    empty: int = 0

    @classmethod
    def of(cls, prompts: Iterable[PromptText], seed: int = 0, most: int = SAMPLED) -> Sample:
        """A sample of at most ``most`` of these prompts. Raises UserError if no prompt has a text."""
        chance, kept, given, empty = random.Random(seed), [], 0, 0
        for prompt in prompts:
            given += 1
            if not prompt.text.strip():
                empty += 1
            elif len(kept) < most:
                kept.append(prompt)
            elif (place := chance.randrange(given - empty)) < most:
                kept[place] = prompt
        if not kept:
            raise UserError("There is no prompt with a text to measure on.")
        return cls(tuple(_by_turns(kept)), given, empty)

    @classmethod
    def of_file(cls, path: Path, seed: int = 0) -> Sample:
        """A sample of the prompts in a file. Raises UserError if they cannot be read."""
        return cls.of(prompts_of(path), seed)

    @property
    def digest(self) -> str:
        pairs = [[prompt.kind, prompt.text] for prompt in self.prompts]
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:16]


def _by_turns(prompts: Iterable[PromptText]) -> Iterator[PromptText]:
    kinds: dict[str, list[PromptText]] = defaultdict(list)
    for prompt in prompts:
        known = prompt.kind in kinds or len(kinds) < MOST_KINDS - 1
        kind = prompt.kind if known else OTHER
        kinds[kind].append(PromptText(prompt.text, kind))
    for turn in zip_longest(*kinds.values()):
        yield from (prompt for prompt in turn if prompt is not None)


def prompts_of(path: Path) -> Iterator[PromptText]:
    """Yields the prompts of a file while the file is read. Raises UserError, one sentence, for a file in none of the
    formats that the module's docstring describes."""
    read = _reader(path.name)
    try:
        with path.open(encoding=ENCODING, newline="" if read is _of_csv else None) as file:
            yield from read(file, path.name)
    except UnicodeDecodeError:
        raise UserError(f"{path.name} is not UTF-8 text.") from None
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}.") from None


def prompts_in(text: str, name: str) -> Iterator[PromptText]:
    """Yields the prompts in ``text``, the content of a file ``name``, whose ending says the format. Raises UserError
    as ``prompts_of`` does."""
    read = _reader(name)
    yield from read(StringIO(text, newline="" if read is _of_csv else None), name)


def _reader(name: str) -> Callable[[TextIO, str], Iterator[PromptText]]:
    known = {".jsonl": _of_jsonl, ".ndjson": _of_jsonl, ".csv": _of_csv}
    return known.get(Path(name).suffix.lower(), _of_lines)


def _lines(file: TextIO, name: str) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise UserError(f"Line {number} of {name} is longer than {LONGEST_LINE:,} characters.")
        yield line


def _of_lines(file: TextIO, name: str) -> Iterator[PromptText]:
    for line in _lines(file, name):
        if line.strip():
            yield PromptText(line.rstrip("\n"))


def _of_jsonl(file: TextIO, name: str) -> Iterator[PromptText]:
    for number, line in enumerate(_lines(file, name), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"Line {number} of {name} is not valid JSON.") from None
        if not isinstance(entry, dict) or not {"prompt", "text"} & entry.keys():
            raise UserError(f'Line {number} of {name} has no field "prompt" or "text".')
        yield _prompt(entry)


def _of_csv(file: TextIO, name: str) -> Iterator[PromptText]:
    csv.field_size_limit(LONGEST_LINE)
    try:
        rows = csv.DictReader(_lines(file, name))
        if not {"prompt", "text"} & {*(rows.fieldnames or ())}:
            raise UserError(f'{name} has no column "prompt" or "text" in its first line.')
        yield from map(_prompt, rows)
    except csv.Error as error:
        raise UserError(f"{name} is not valid CSV: {error}.") from None


def _prompt(entry: dict) -> PromptText:
    text, kind = entry.get("prompt", entry.get("text")), entry.get("kind", entry.get("category"))
    kind = kind.strip()[:KIND_LENGTH] if isinstance(kind, str) else ""
    return PromptText(text if isinstance(text, str) else "", kind or OTHER)
