"""The timeline of the field: the papers of the method cards, and some papers without a card."""

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
    """Return the papers in the order of years, each {"name", "title", "authors", "venue", "year", "key"}. key: the key
    of its card, or "". Raises UserError for an invalid paper in field.toml."""
    papers = [
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
        papers.append({**paper, "key": ""})
    if min(paper["year"] for paper in papers) < 2018:
        raise UserError("The field begins in 2018.")
    return sorted(papers, key=lambda paper: (paper["year"], paper["name"].lower()))
