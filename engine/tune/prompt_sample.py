"""The prompts of a tuning: a sample of a file that may be much larger than memory, or of prompts at hand.

A file is JSONL (a ``prompt`` or ``text`` in each object, and perhaps its ``kind`` or ``category``), CSV with a column of one of
these names, or plain text with a prompt on each line. It is read once, line by line; a reservoir (Vitter, Random Sampling with a
Reservoir, 1985) keeps every prompt with the same chance.
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
"""Characters; a longer line is refused before it is in memory."""
MOST_KINDS, KIND_LENGTH = 32, 40
OTHER = "other"
"""The kind of prompts whose kind is not told, and of all kinds beyond MOST_KINDS."""


@dataclass(frozen=True)
class PromptText:
    text: str
    kind: str = OTHER


@dataclass(frozen=True)
class Sample:
    """given: how many prompts there were. empty: how many of them have no text. prompts: those that were drawn, the kinds by
    turns, so that every beginning holds all kinds."""

    prompts: tuple[PromptText, ...]
    given: int
    empty: int = 0

    @classmethod
    def of(cls, prompts: Iterable[PromptText], seed: int = 0, most: int = SAMPLED) -> Sample:
        """Raises UserError where no prompt has a text."""
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
        """Raises UserError for a file that cannot be read as prompts."""
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
    """The prompts of a file as they are read. Raises UserError, one sentence, for a file that is not as described above."""
    read = _reader(path.name)
    try:
        with path.open(encoding=ENCODING, newline="" if read is _of_csv else None) as file:
            yield from read(file, path.name)
    except UnicodeDecodeError:
        raise UserError(f"{path.name} is not UTF-8 text.") from None
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}.") from None


def prompts_in(text: str, name: str) -> Iterator[PromptText]:
    """The prompts in ``text``, the content of the file ``name``. Raises UserError as ``prompts_of`` does."""
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
