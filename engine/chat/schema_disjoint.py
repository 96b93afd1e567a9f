"""Whether no document can match two JSON schemas: shown by types, values, bounds, and properties of objects."""

from collections.abc import Callable

TYPES = frozenset(("null", "boolean", "number", "string", "array", "object"))
MOST_QUESTIONS, DEEPEST = 5_000, 30


class Disjoint:
    """Answers True only where it can be shown, within a bound on the work. resolve: a reference -> its schema."""

    def __init__(self, resolve: Callable[[str], object]) -> None:
        self._resolve = resolve
        self._left = MOST_QUESTIONS

    def __call__(self, one: object, other: object, depth: int = 0) -> bool:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return False
        if one is False or other is False:
            return True
        if not isinstance(one, dict) or not isinstance(other, dict):
            return False
        return (
            self._by_parts(one, other, depth + 1)
            or self._by_parts(other, one, depth + 1)
            or all(
                self._of_type(kind, one, other, depth + 1)
                for kind in self._types(one, depth) & self._types(other, depth)
            )
        )

    def _by_parts(self, one: dict, other: object, depth: int) -> bool:
        """Whether ``one`` is disjoint because what it is made of is."""
        if isinstance(one.get("$ref"), str) and self(self._resolve(one["$ref"]), other, depth):
            return True
        if any(self(part, other, depth) for part in list_of(one, "allOf")):
            return True
        for keyword in ("anyOf", "oneOf"):
            parts = list_of(one, keyword)
            if parts and all(self(part, other, depth) for part in parts):
                return True
        values = _values(one)
        return values is not None and all(self._excludes(other, value) for value in values)

    def _types(self, schema: dict, depth: int) -> frozenset[str]:
        """The types that its documents may have."""
        types = TYPES
        names = schema.get("type")
        if isinstance(names, str | list):
            names = [names] if isinstance(names, str) else names
            types &= frozenset("number" if name == "integer" else str(name) for name in names)
        values = _values(schema)
        if values is not None:
            types &= frozenset(map(_type_of, values))
        return types

    def _of_type(self, kind: str, one: dict, other: dict, depth: int) -> bool:
        """Whether no document of this type matches both."""
        if kind == "object":
            return self._objects(one, other, depth)
        if kind == "number":
            return _below(one, other) or _below(other, one)
        sizes = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}.get(kind)
        if sizes is None:
            return False
        least, most = sizes
        return _less(one.get(most), other.get(least)) or _less(other.get(most), one.get(least))

    def _objects(self, one: dict, other: dict, depth: int) -> bool:
        names = [*list_of(one, "required"), *list_of(other, "required")]
        return any(
            isinstance(name, str) and self(_property(one, name), _property(other, name), depth)
            for name in names
        )

    def _excludes(self, schema: object, value: object) -> bool:
        """Whether the value is shown not to match."""
        if not isinstance(schema, dict):
            return schema is False
        values = _values(schema)
        if values is not None and not any(_same(const, value) for const in values):
            return True
        if _type_of(value) not in self._types(schema, 0):
            return True
        exact = {"minimum": value, "maximum": value}
        return _type_of(value) == "number" and (_below(exact, schema) or _below(schema, exact))


def list_of(schema: dict, keyword: str) -> list:
    """The keyword's value if it is a list; else an empty one."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def dict_of(schema: dict, keyword: str) -> dict:
    """The keyword's value if it is an object; else an empty one."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _values(schema: dict) -> list | None:
    """The only values that may match, if they are listed."""
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def _same(one: object, other: object) -> bool:
    """Equality of JSON: 1 is 1.0, but not true."""
    if _type_of(one) != _type_of(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return one == other


def _property(schema: dict, name: str) -> object:
    """The schema of a property; True if it cannot be told."""
    named = dict_of(schema, "properties")
    if name in named:
        return named[name]
    if schema.get("patternProperties"):
        return True
    return schema.get("additionalProperties", True)


def _below(one: dict, other: dict) -> bool:
    """Whether every number of ``one`` is less than every number of ``other``."""
    most, least = one.get("maximum"), other.get("minimum")
    beyond, above = one.get("exclusiveMaximum"), other.get("exclusiveMinimum")
    return (
        _less(most, least)
        or _less(beyond, least, True)
        or _less(most, above, True)
        or _less(beyond, above, True)
    )


def _less(one: object, other: object, equal: bool = False) -> bool:
    numbers = all(type(value) in (int, float) for value in (one, other))
    return numbers and (one < other or (equal and one == other))
