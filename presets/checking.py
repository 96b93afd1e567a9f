"""Checks the fields of a table in a card or a lesson; a mistake is reported in one sentence."""

from collections.abc import Collection, Mapping

from engine.errors import UserError

NOUNS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    dict: "a table",
    list: "a list",
}


def check(place: str, given: object, fields: Mapping, required: Collection[str]) -> None:
    """Raise UserError unless ``given`` is a table that has these fields only, and all required fields.

    place: the place of the table, as the sentence names it. fields: field -> its type, or several types.
    """
    if not isinstance(given, dict):
        raise UserError(f"{place} must be a table.")
    for name in given:
        if name not in fields:
            known = ", ".join(fields)
            raise UserError(f"{place} has an unknown field {name!r}; known are: {known}.")
    for name in required:
        if name not in given:
            raise UserError(f"{place} has no {name}.")
    for name, value in given.items():
        kind = fields[name]
        number = kind is not bool and isinstance(value, bool)
        if number or not isinstance(value, kind):
            raise UserError(f"{place} must have {NOUNS.get(kind, 'a number')} as its {name}.")
        if isinstance(value, str) and not value.strip():
            raise UserError(f"{place} has an empty {name}.")
