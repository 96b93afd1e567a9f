"""The timeline of the field: the papers of the method cards, and some papers that have no card."""

import tomllib
from functools import cache
from pathlib import Path

from engine.errors import UserError
from engine.text_file import text_of
from presets import cards
from presets.checking import check

FIELDS = {**dict.fromkeys(("name", "title", "authors", "venue"), str), "year": int}


@cache
def timeline() -> list[dict]:
    """The papers in the order of years: {"name", "title", "authors", "venue", "year", "key"}; key: the card's, or
    ""."""
    found = [
        {
            **{part: card.paper[part] for part in ("title", "authors", "venue", "year")},
            "name": card.title,
            "key": card.key,
        }
        for card in cards().values()
        if card.paper
    ]
    file = Path(__file__).parent / "field.toml"
    for paper in tomllib.loads(text_of(file))["paper"]:
        check("A paper of field.toml", paper, FIELDS, required=FIELDS)
        found.append({**paper, "key": ""})
    if min(paper["year"] for paper in found) < 2018:
        raise UserError("The field begins in 2018.")
    return sorted(found, key=lambda paper: (paper["year"], paper["name"].lower()))
