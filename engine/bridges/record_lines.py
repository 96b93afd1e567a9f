"""The lines of a tuning record, read from a file that may be a stranger's, or may have been cut off while it was
written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.bridges.step_counts import MOST_COUNT, MOST_DRAFTED, whole
from engine.errors import UserError
from engine.text_file import text_of
from engine.trace import MAX_BYTES

MOST_BYTES = MAX_BYTES
KINDS = ("tuning", "cost", "acceptance", "setting", "estimate", "progress", "answer")


def checked_text(path: Path) -> str:
    """The text of a file. Raises UserError, one sentence, for a folder, and for a file that is missing or too large."""
    if path.is_dir():
        raise UserError(f"{path.name} is a folder.")
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        raise UserError(f"There is no file {path.name[:80]}.") from None
    if size > MOST_BYTES:
        raise UserError(f"{path.name} is larger than {MOST_BYTES >> 20} MB.")
    return text_of(path)


def record_lines(text: str, name: str) -> list[dict]:
    """The lines of a record. An incomplete last line without a line break is dropped. Raises UserError for a text that
    is not a record."""
    return list(_lines(text, name))


def _lines(text: str, name: str) -> Iterator[dict]:
    lines, whole_before = text.split("\n"), False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines) and whole_before:
                return  # the writer was stopped within it
            raise UserError(f"Line {number} of {name} is not valid JSON.") from None
        if not isinstance(entry, dict) or entry.get("kind") not in KINDS:
            raise UserError(
                f"{name} is no tuning record: line {number} is of no kind that one has."
            )
        if entry["kind"] == "acceptance":
            try:
                check_acceptance(entry)
            except (ValueError, TypeError, AttributeError) as error:
                raise UserError(f"Line {number} of {name} is broken: {str(error)[:120]}.") from None
        yield entry
        whole_before = True


def check_acceptance(line: Mapping) -> None:
    """Raises ValueError, TypeError or AttributeError for an ``acceptance`` line with fields that are invalid or
    contradict each other."""
    positions = line.get("positions", [])
    if not isinstance(positions, list) or len(positions) > MOST_DRAFTED:
        raise ValueError("its positions are no list, or too many")
    for place, entry in enumerate(positions, 1):
        accepted = whole(entry.get("accepted"))
        if entry.get("position") != place or accepted > whole(entry.get("reached", accepted)):
            raise ValueError(f"its position {place} contradicts itself")
    for name in ("size", "steps", "drafted", "accepted", "new_tokens"):
        if name in line:
            whole(line[name])
    if line.get("accepted", 0) > line.get("drafted", MOST_COUNT):
        raise ValueError("more tokens are kept than drafted")
    for name in ("drafter", "prompt_kind", "verifier"):
        if not isinstance(line.get(name, ""), str):
            raise TypeError(f"its {name} is no text")
    for name in ("options", "stated", "source"):
        if not isinstance(line.get(name, {}), dict):
            raise TypeError(f"its {name} is no object")
