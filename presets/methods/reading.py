"""Reads one method card. A mistake in it is reported in one sentence that names the file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from engine.errors import UserError
from engine.text_file import text_of
from presets.checking import check
from presets.listed import Preset, presets, prompt_of

FAMILIES = (
    *("chain", "tree", "retrieval", "diffusion", "heads", "self", "decoder", "none"),
    *("rule", "loop", "policy", "recipe", "meter", "constraint"),
)
KINDS = (
    *("drafter", "decoder", "rule", "loop", "policy", "recipe", "meter", "study"),
    *("workload", "kernel", "constraint"),
)
EXACTNESS = ("exact", "lossy", "both", "other", "n/a")
"""The value "other" means texts that are meant to follow another law than the target's."""

CARD = {
    **dict.fromkeys(("title", "family", "kind", "exactness", "mechanism", "watch"), str),
    "needs_training": bool,
}
OPTIONAL = {"loses": str, "drawn_by": str}
TABLES = {
    "paper": {"title": str, "authors": str, "venue": str, "year": int},
    "claim": {"text": str, "setting": str},
    "part": {"name": str, "recipe": str},
    "measured": dict.fromkeys(("before", "after", "kept_before", "kept_after"), (int, float)),
}
"""``measured``: what a recipe printed of its part, beside the part that it replaces: accepted lengths, or of a draft the chance
that the target keeps its draws at temperature 1."""
EXAMPLE = {
    **dict.fromkeys(
        ("drafter", "verifier", "prompt", "workload", "prompt_id", "json_schema", "models"), str
    ),
    **dict.fromkeys(("options", "rule_options"), dict),
    **dict.fromkeys(("python_names", "heal"), bool),
    "temperature": (int, float),
    "max_new_tokens": int,
}


def read_card(key: str, path: Path) -> dict:
    """Return the fields of a card, with its own example as a Preset. Raises UserError."""
    try:
        card = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The card of {key} is not TOML: {error}.") from None
    place = f"The card of {key}"
    card.pop("goals", None)  # engine bench reads the goals
    holds = card.pop("holds", [])
    if not isinstance(holds, list) or not all(isinstance(condition, str) for condition in holds):
        raise UserError(f"{place} must have a list of texts as its holds.")
    tables = {name: card.pop(name) for name in (*TABLES, "example") if name in card}
    check(place, card, CARD | OPTIONAL, required=CARD)
    for name, words in (("family", FAMILIES), ("kind", KINDS), ("exactness", EXACTNESS)):
        if card[name] not in words:
            allowed = ", ".join(words)
            raise UserError(f"{place} has the {name} {card[name]!r}; known are: {allowed}.")
    for name, fields in TABLES.items():
        if name in tables:
            check(f"{place}, [{name}],", tables[name], fields, () if name == "measured" else fields)
    example = tables.pop("example", None)
    return {**card, "holds": tuple(holds), **tables, **_example(key, place, card, example)}


def _example(key: str, place: str, card: Mapping, given: object) -> dict:
    """Return the fields "example" and "own_example": the name of a listed preset, or the card's own example, which has
    the card's key as its name; {} for a card without an example. Raises UserError."""
    if given is None:
        return {}
    place = f"{place}, [example],"
    if isinstance(given, dict) and set(given) == {"preset"}:
        if all(given["preset"] != preset.name for preset in presets()):
            raise UserError(f"{place} names the preset {given['preset']!r}, which is not listed.")
        return {"example": given["preset"]}
    check(place, given, EXAMPLE, required=("drafter",))
    fields = dict(given)
    kind = fields.pop("workload", "story")
    if "prompt_id" in fields:
        fields["prompt"] = prompt_of(kind, fields.pop("prompt_id"))
    if "prompt" not in fields:
        raise UserError(f"{place} has neither a prompt nor a prompt_id.")
    own = Preset(name=key, title=card["title"], kind=kind, look_for=card["watch"], **fields)
    return {"example": key, "own_example": own}
