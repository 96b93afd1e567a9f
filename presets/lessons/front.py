"""The head of a lesson's file: TOML between two lines of ``+++``."""

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
    """question: what a reader can predict afterwards. methods: keys of the cards for further reading. goals: what a
    reader can do afterwards."""

    title: str
    question: str
    minutes: int
    methods: tuple[str, ...]
    goals: tuple[str, ...]


def read_front(path: Path) -> tuple[Front, str]:
    """The head of this file, and its text. Raises UserError, one sentence that names the file."""
    place = f"The lesson {path.name}"
    begin, head, text = ("", *text_of(path).split(FENCE, 2)[1:], "", "")[:3]
    if begin or not head or not text:
        raise UserError(f"{place} does not begin with TOML between two lines of +++.")
    try:
        given = tomllib.loads(head)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{place}: its head is not TOML: {error}.") from None
    check(place, given, FIELDS, required=FIELDS)
    return Front(
        **{**given, "methods": tuple(given["methods"]), "goals": tuple(given["goals"])}
    ), text
