"""Reads the head of a lesson's file: TOML between two lines of ``+++``."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UserError
from engine.text_file import text_of
from presets.checking import check

FIELDS = {"title": str, "question": str, "minutes": int, "methods": list, "goals": list}
FENCE = "+++\n"


@dataclass(frozen=True)
class Front:
    """The head of a lesson. question: the question that a reader can answer afterwards. minutes: the time for reading
    it. methods: keys of the cards for further reading. goals: the skills that a reader has afterwards."""

    title: str
    question: str
    minutes: int
    methods: tuple[str, ...]
    goals: tuple[str, ...]


def read_front(path: Path) -> tuple[Front, str]:
    """Return the head of this file, and the text after it. Raises UserError, one sentence that names the file."""
    place = f"The lesson {path.name}"
    begin, head, text = ("", *text_of(path).split(FENCE, 2)[1:], "", "")[:3]
    if begin or not head or not text:
        raise UserError(f"{place} does not begin with TOML between two lines of +++.")
    try:
        fields = tomllib.loads(head)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{place}: its head is not TOML: {error}.") from None
    check(place, fields, FIELDS, required=FIELDS)
    return Front(
        **{**fields, "methods": tuple(fields["methods"]), "goals": tuple(fields["goals"])}
    ), text
