"""Ten JSON schemas, written for the benchmarks. Each uses one feature of JSON Schema."""

from collections.abc import Mapping

SHORT = {"type": "string", "maxLength": 12}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}


def _record(required: list[str] | None = None, **fields: object) -> dict:
    """The schema of an object with exactly these fields. required: the names of required fields; None means all."""
    return {
        "type": "object",
        "properties": fields,
        "required": [*fields] if required is None else required,
        "additionalProperties": False,
    }


FEATURES: Mapping[str, dict] = {
    "required": _record(name=SHORT, count=NUMBER, city=SHORT, active={"type": "boolean"}),
    "optional": _record(["name"], name=SHORT, count=NUMBER, city=SHORT),
    "enum": _record(
        colour={"enum": ["red", "green", "blue", "yellow"]}, size={"enum": ["small", "large"]}
    ),
    "const": _record(kind={"const": "record"}, version={"const": 2}, name=SHORT),
    "pattern": _record(
        code={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        day={"type": "string", "pattern": "^20[0-9]{2}-[01][0-9]-[0-3][0-9]$"},
    ),
    "numbers": _record(
        count=NUMBER,
        degrees={"type": "integer", "minimum": -20, "maximum": 40},
        year={"type": "integer", "minimum": 1990, "maximum": 2030},
    ),
    "arrays": _record(
        names={"type": "array", "items": SHORT, "minItems": 2, "maxItems": 4},
        counts={"type": "array", "items": NUMBER, "minItems": 3, "maxItems": 3},
    ),
    "nesting": _record(owner=_record(name=SHORT, home=_record(city=SHORT, number=NUMBER))),
    "unions": _record(
        value={"anyOf": [SHORT, NUMBER, {"type": "boolean"}, {"type": "null"}]},
        other={"anyOf": [_record(name=SHORT), _record(count=NUMBER)]},
    ),
    "refs": {
        **_record(first={"$ref": "#/$defs/person"}, second={"$ref": "#/$defs/person"}),
        "$defs": {"person": _record(name=SHORT, age=NUMBER)},
    },
}
"""From the name of a feature of JSON Schema to a schema that uses this feature and little else."""
