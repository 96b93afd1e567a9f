"""Other engines' records of speculative decoding as ``acceptance`` lines. The format of a record is recognised by its
contents.

Data that a source does not give is absent from the line, and ``source.lacks`` says so in a sentence. Nothing is
estimated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.bridges.own_traces import lines_of_traces
from engine.bridges.prometheus import is_metrics, lines_of_metrics
from engine.bridges.record_lines import KINDS, check_acceptance, checked_text, record_lines
from engine.bridges.request_records import lines_of_answers
from engine.bridges.specspecs import DRAFTS, lines_of_parquet
from engine.errors import UserError
from engine.trace import Trace, read_trace

PARQUET = b"PAR1"
MOST_FILES = 2000
"""The most files of one folder."""
TRACES = "*.ndjson"


def imported(paths: Sequence[str | Path]) -> list[dict]:
    """The ``acceptance`` lines of all these files and folders. A folder holds traces, or a log of specspecs.

    Raises UserError, one sentence, for the first path that cannot be read.
    """
    lines: list[dict] = []
    for path in map(Path, paths):
        lines += _of_folder(path) if path.is_dir() else _of_file(path)
    return lines


def imported_text(text: str, name: str) -> list[dict]:
    """The ``acceptance`` lines in the text of one file. Raises UserError."""
    return _checked(_lines_of(text, name), name)


def _lines_of(text: str, name: str) -> list[dict]:
    kind = _kind(text)
    if kind == "run":
        return lines_of_traces([(name, read_trace(f"{text}\n"))])
    if kind in KINDS:
        lines = [line for line in record_lines(text, name) if line["kind"] == "acceptance"]
        if not lines:
            raise UserError(f"{name} is a tuning record without acceptance.")
        return lines
    if not text.strip():
        raise UserError(f"{name} is empty.")
    return lines_of_metrics(text, name) if is_metrics(text) else lines_of_answers(text, name)


def _of_file(path: Path) -> list[dict]:
    try:
        with path.open("rb") as file:
            first = file.read(4)
    except (OSError, ValueError):
        raise UserError(f"There is no file {path.name[:80]}, or it cannot be read.") from None
    if first == PARQUET:
        return _checked(lines_of_parquet([path], path.name), path.name)
    return imported_text(checked_text(path), path.name)


def _of_folder(folder: Path) -> list[dict]:
    name = folder.resolve().name
    parquet = sorted(folder.glob(DRAFTS))
    files = parquet or sorted(folder.glob(TRACES))
    if len(files) > MOST_FILES:
        raise UserError(f"{name} holds more than {MOST_FILES:,} files.")
    if not files:
        raise UserError(
            f"{name} holds neither traces ({TRACES}) nor a log of specspecs ({DRAFTS})."
        )
    lines = lines_of_parquet(parquet, name) if parquet else lines_of_traces(_traces(files))
    return _checked(lines, name)


def _checked(lines: list[dict], name: str) -> list[dict]:
    """Return these lines unchanged. Raises UserError if sums in them contradict each other, or are too large for a
    record."""
    try:
        for line in lines:
            check_acceptance(line)
    except ValueError as error:
        raise UserError(f"{name} contradicts itself: {error}.") from None
    return lines


def _traces(files: Sequence[Path]) -> Iterator[tuple[str, Trace]]:
    for path in files:
        try:
            yield path.name, read_trace(path)
        except UserError as error:
            raise UserError(f"{path.name}: {error}") from None


def _kind(text: str) -> str:
    """The ``kind`` of the first line; "" if the line is not a JSON object with a kind."""
    try:
        first = json.loads(text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return ""
    kind = first.get("kind") if isinstance(first, dict) else None
    return kind if isinstance(kind, str) else ""
