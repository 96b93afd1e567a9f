"""Checks a JSON schema before its grammar is compiled, so that every promise of the schema is either kept, or named and
refused.

The grammar engine refuses most features that it lacks. This module handles the others: invalid JSON; numbers that the
grammar engine would round; keys that only the grammar engine knows; keywords that the schema's draft of JSON Schema
lacks; patterns that mean something else in the grammar engine; formats that it checks too loosely; and ``oneOf``, which
it accepts only where no document can match two of the branches.
"""

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from engine.chat.schema_disjoint import Disjoint, dict_of, list_of
from engine.chat.schema_patterns import DATE, DATE_TIME, pattern, unusable, writes_controls
from engine.errors import UserError

MOST_CHARACTERS = 20_000  # the most characters of a schema
DEEPEST = 64  # levels of nesting; the grammar engine reads about twice as many
FARTHEST = 256  # levels from the top, down and along references: each takes two of Python's calls
LARGEST = 2**64  # integers must be smaller
ONE = ("items", "additionalItems", "additionalProperties")
LISTS = ("items", "prefixItems", "allOf", "anyOf", "oneOf")
MAPS = ("properties", "patternProperties")
IMPOSSIBLE = (
    *("not", "if", "contains", "uniqueItems", "propertyNames", "dependencies", "dependentRequired"),
    *(
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
    ),
    *("minContains", "maxContains", "then", "else"),
)
DRAFTS = ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12")
YOUNGEST = {"const": "draft-06", "prefixItems": "2020-12"}
"""Keywords -> the first draft of JSON Schema that has them. A schema of an older draft should ignore them, and the
grammar engine might apply them."""
BOUNDS = {"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1}
"""Keyword -> 1 if a larger value allows fewer documents, -1 if a smaller value does."""


class Checked(NamedTuple):
    """A checked schema.
    text: the schema as JSON for the grammar engine. escapes: letters that may follow a backslash in a string of a
    document; None allows all of JSON's."""

    text: str
    escapes: str | None


def checked(schema: str) -> Checked:
    """The checked schema. Raises UserError, one sentence, for a schema that cannot be kept."""
    content = _read(schema)
    if not isinstance(content, dict):
        raise UserError("A JSON schema is an object in braces.")
    if "x-guidance" in content:
        raise unusable("x-guidance is a key of one grammar engine, not of JSON Schema")
    check = _Check(content)
    check.visit(content, "", "2020-12")
    # The engine compares names of properties as they are written, so a name written with escapes could repeat another.
    escapes = 'nrbtf\\"' if check.open_names else None
    if check.open_names and check.controls:
        raise unusable(
            f"{check.controls} asks for a control character, which is possible only where additionalProperties is "
            "false for every object that names properties"
        )
    return Checked(json.dumps(content), escapes)


def _read(schema: str) -> object:
    if len(schema) > MOST_CHARACTERS:
        raise UserError(f"A JSON schema may have at most {MOST_CHARACTERS:,} characters.")
    if not schema.strip():
        raise UserError("The JSON schema is empty.")
    try:
        content = json.loads(
            schema,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_int=_integer,
            parse_float=_float,
        )
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UserError(
            "The JSON schema holds half of a pair of surrogates (\\ud800 to \\udfff), which is no character."
        ) from None
    except (ValueError, RecursionError):
        raise UserError("The JSON schema is not valid JSON.") from None
    if _depth(content) > DEEPEST:
        raise UserError(f"The JSON schema is nested more than {DEEPEST} levels deep.")
    return content


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries: dict[str, object] = {}
    for key, value in pairs:
        if key in entries:
            raise UserError(
                f"The JSON schema has the key {json.dumps(key[:60])} twice in one object."
            )
        entries[key] = value
    return entries


def _no_number(name: str) -> None:
    raise UserError(f"The JSON schema is not valid JSON: {name} is no number of JSON.")


def _integer(text: str) -> int:
    if len(text) > 21 or abs(int(text)) >= LARGEST:
        raise UserError(
            f"The JSON schema holds the integer {text[:30]}{'…' * (len(text) > 30)}; integers must lie within "
            "2 to the power of 64."
        )
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise UserError(f"The JSON schema holds the number {text[:30]}, which is too large.")
    return value


def _depth(content: object) -> int:
    level, depth = [content], 0
    while level:
        depth += 1
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


class _Check:
    """Visits every schema that may apply to a part of a document, and rewrites parts that the grammar engine would
    check too loosely.

    open_names: whether an object may have properties besides the named ones. controls: the place where a control
    character is required, or None.
    """

    def __init__(self, root: dict) -> None:
        self._root = root
        self._seen: set[int] = set()
        self._level = 0
        self.open_names = False
        self.controls: str | None = None
        self._disjoint = Disjoint(self.resolve)
        # A part with a name of its own is the root of the references within it.
        self._one_root = json.dumps(root).count('"$id"') == ("$id" in root)

    def visit(self, schema: object, place: str, draft: str) -> None:
        """Check a schema and all schemas below it. place: its JSON pointer. draft: the draft of JSON Schema that
        applies."""
        if not isinstance(schema, dict) or id(schema) in self._seen:
            return
        self._seen.add(id(schema))
        self._level += 1
        if self._level > FARTHEST:
            raise UserError(
                f"The JSON schema leads more than {FARTHEST} levels deep along its references."
            )
        draft = _draft(schema, draft)
        self._keywords(schema, place, draft)
        self._values(schema, place)
        self._objects(schema, place)
        self._strings(schema, place)
        for where, below in _below(schema):
            self.visit(below, f"{place}/{where}", draft)
        self._references(schema, draft)
        if "oneOf" in schema:
            self._one_of(schema, place)
        self._level -= 1

    def resolve(self, reference: str) -> object:
        """The schema that a reference within the document names; None if it cannot be found."""
        if not reference.startswith("#/") or not self._one_root:
            return self._root if reference == "#" and self._one_root else None
        subschema: object = self._root
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(subschema, dict) and part in subschema:
                subschema = subschema[part]
            elif isinstance(subschema, list) and part.isdecimal() and int(part) < len(subschema):
                subschema = subschema[int(part)]
            else:
                return None
        return subschema

    def _keywords(self, schema: dict, place: str, draft: str) -> None:
        if schema.get("uniqueItems") is False:
            del schema["uniqueItems"]
        for keyword in IMPOSSIBLE:
            if keyword in schema:
                raise unusable(f"{_at(keyword, place)} is not possible.")
        for keyword, first in YOUNGEST.items():
            if keyword in schema and DRAFTS.index(draft) < DRAFTS.index(first):
                raise unusable(
                    f"{_at(keyword, place)} is no keyword of the draft that $schema names."
                )

    def _values(self, schema: dict, place: str) -> None:
        for keyword, direction in BOUNDS.items():
            value = schema.get(keyword)
            if value is True and keyword.removeprefix("exclusive").lower() not in schema:
                raise unusable(f"{_at(keyword, place)} is true, which belongs to a bound beside it")
            if type(value) in (int, float) and value * direction >= 2**63:  # the engine's integers
                raise unusable(
                    f"{_at(keyword, place)} leaves no number within 2 to the power of 63"
                )
            if isinstance(value, int) and not isinstance(value, bool):
                schema[keyword] = _rounded(value, direction)
        values = [schema[keyword] for keyword in ("const", "multipleOf") if keyword in schema]
        values += list_of(schema, "enum")
        for value in _leaves(values):
            if type(value) in (int, float) and abs(value) > 2**53:
                raise unusable(
                    f"the number {value} is kept only where it is a bound; elsewhere numbers must lie within 2 to the "
                    "power of 53"
                )
            if isinstance(value, str) and writes_controls(value):
                self.controls = place or "the schema"

    def _objects(self, schema: dict, place: str) -> None:
        required = {name for name in list_of(schema, "required") if isinstance(name, str)}
        named = {*dict_of(schema, "properties"), *required}
        patterns = dict_of(schema, "patternProperties")
        free = schema.get("additionalProperties", True) is not False
        if free and (named or patterns):
            self.open_names = True
        if any(map(writes_controls, named)):
            self.controls = place or "the schema"
        least = schema.get("minProperties", 0)
        if isinstance(least, int) and least > len(required) + 1 and (free or patterns):
            raise unusable(
                f"{_at('minProperties', place)} is not possible, because a property "
                "that no name is given for may be written twice; require all but one of them by name."
            )

    def _strings(self, schema: dict, place: str) -> None:
        if isinstance(schema.get("pattern"), str):
            schema["pattern"] = pattern(schema["pattern"])
            if writes_controls(schema["pattern"], True):
                self.controls = place or "the schema"
        for name in list(patterns := dict_of(schema, "patternProperties")):
            patterns[pattern(name)] = patterns.pop(name)
        if schema.get("format") == "hostname":
            most = schema.get("maxLength")
            schema["maxLength"] = min(most, 253) if isinstance(most, int) else 253
        strict = {"date": DATE, "date-time": DATE_TIME}.get(str(schema.get("format")))
        if strict is not None:
            del schema["format"]
            if "pattern" in schema:
                schema["allOf"] = [*list_of(schema, "allOf"), {"pattern": strict}]
            else:
                schema["pattern"] = strict

    def _references(self, schema: dict, draft: str) -> None:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return
        if not reference.startswith("#"):
            raise unusable(f"the reference {json.dumps(reference[:100])} leads out of it.")
        named = self.resolve(reference)
        if named is not None:
            self.visit(named, reference[1:], draft)
            return
        for keyword in ("$defs", "definitions"):  # the reference may mean one of these
            for name, inner in dict_of(self._root, keyword).items():
                self.visit(inner, f"/{keyword}/{name}", draft)

    def _one_of(self, schema: dict, place: str) -> None:
        branches = schema["oneOf"]
        if not isinstance(branches, list):
            return  # the grammar engine reports it
        typed = {"type": schema["type"]} if "type" in schema else {}
        whole = [typed | branch if isinstance(branch, dict) else branch for branch in branches]
        for number, branch in enumerate(whole):
            for second in range(number + 1, len(whole)):
                if not self._disjoint(branch, whole[second]):
                    raise unusable(
                        f"{_at('oneOf', place)} is possible only where no document "
                        f"can match two of its branches, and this cannot be shown for branches {number + 1} and "
                        f"{second + 1}; anyOf allows both."
                    )
        del schema["oneOf"]
        if "anyOf" in schema:
            schema["allOf"] = [*list_of(schema, "allOf"), {"anyOf": branches}]
        else:
            schema["anyOf"] = branches


def _draft(schema: dict, draft: str) -> str:
    named = schema.get("$schema")
    return next(
        (candidate for candidate in DRAFTS if isinstance(named, str) and candidate in named), draft
    )


def _below(schema: dict) -> Iterator[tuple[str, object]]:
    """The schemas directly below this one, each with its relative JSON pointer."""
    for keyword in ONE:
        if keyword in schema:
            yield keyword, schema[keyword]
    for keyword in LISTS:
        yield from ((f"{keyword}/{n}", inner) for n, inner in enumerate(list_of(schema, keyword)))
    for keyword in MAPS:
        yield from (
            (f"{keyword}/{name}", inner) for name, inner in dict_of(schema, keyword).items()
        )


def _leaves(values: list) -> Iterator[object]:
    """Yields every number and string in these values, including the names of properties."""
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value)
        elif isinstance(value, dict):
            yield from value
            yield from _leaves([*value.values()])
        elif not isinstance(value, bool):
            yield value


def _rounded(bound: int, direction: int) -> int:
    """The nearest integer that a float holds and that does not widen the bound."""
    value = float(bound)
    if (int(value) - bound) * direction < 0:
        value = math.nextafter(value, direction * math.inf)
    return int(value)


def _at(keyword: str, place: str) -> str:
    shown = place if len(place) <= 80 else f"{place[:80]}…"
    return f"{keyword} at {shown}" if place else keyword
