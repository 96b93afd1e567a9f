"""Whether no document can match two JSON schemas: decided by types, values, bounds, and properties of objects."""

from collections.abc import Callable

TYPES = frozenset(("null", "boolean", "number", "string", "array", "object"))
MOST_QUESTIONS, DEEPEST = 5_000, 30


class Disjoint:
    """Returns True only if it can show, within a limit on its work, that no document matches both schemas. resolve: a
    function from a reference to its schema."""

    def __init__(self, resolve: Callable[[str], object]) -> None:
        self._resolve = resolve
        self._left = MOST_QUESTIONS

    def __call__(self, first: object, second: object, depth: int = 0) -> bool:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return False
        if first is False or second is False:
            return True
        if not isinstance(first, dict) or not isinstance(second, dict):
            return False
        return (
            self._by_parts(first, second, depth + 1)
            or self._by_parts(second, first, depth + 1)
            or all(
                self._of_type(kind, first, second, depth + 1)
                for kind in self._types(first, depth) & self._types(second, depth)
            )
        )

    def _by_parts(self, first: dict, second: object, depth: int) -> bool:
        """Whether the reference, the subschemas or the listed values of ``first`` show that it is disjoint from
        ``second``."""
        if isinstance(first.get("$ref"), str) and self(self._resolve(first["$ref"]), second, depth):
            return True
        if any(self(part, second, depth) for part in list_of(first, "allOf")):
            return True
        for keyword in ("anyOf", "oneOf"):
            parts = list_of(first, keyword)
            if parts and all(self(part, second, depth) for part in parts):
                return True
        values = _values(first)
        return values is not None and all(self._excludes(second, value) for value in values)

    def _types(self, schema: dict, depth: int) -> frozenset[str]:
        """The types that documents of the schema may have."""
        types = TYPES
        names = schema.get("type")
        if isinstance(names, str | list):
            names = [names] if isinstance(names, str) else names
            types &= frozenset("number" if name == "integer" else str(name) for name in names)
        values = _values(schema)
        if values is not None:
            types &= frozenset(map(_type_of, values))
        return types

    def _of_type(self, kind: str, first: dict, second: dict, depth: int) -> bool:
        """Whether no document of this type matches both schemas."""
        if kind == "object":
            return self._objects(first, second, depth)
        if kind == "number":
            return _below(first, second) or _below(second, first)
        sizes = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}.get(kind)
        if sizes is None:
            return False
        least, most = sizes
        return _less(first.get(most), second.get(least)) or _less(
            second.get(most), first.get(least)
        )

    def _objects(self, first: dict, second: dict, depth: int) -> bool:
        names = [*list_of(first, "required"), *list_of(second, "required")]
        return any(
            isinstance(name, str) and self(_property(first, name), _property(second, name), depth)
            for name in names
        )

    def _excludes(self, schema: object, value: object) -> bool:
        """Whether the value certainly does not match the schema."""
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
    """The keyword's value if it is a list; otherwise an empty list."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def dict_of(schema: dict, keyword: str) -> dict:
    """The keyword's value if it is an object; otherwise an empty one."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _values(schema: dict) -> list | None:
    """The values that the schema lists, which alone may match; None if it lists none."""
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def _same(first: object, second: object) -> bool:
    """Whether two values are equal in JSON: 1 equals 1.0, but not true."""
    if _type_of(first) != _type_of(second):
        return False
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _same(first[key], second[key]) for key in first
        )
    return first == second


def _property(schema: dict, name: str) -> object:
    """The schema of a property; True, which matches anything, if it cannot be determined."""
    named = dict_of(schema, "properties")
    if name in named:
        return named[name]
    if schema.get("patternProperties"):
        return True
    return schema.get("additionalProperties", True)


def _below(first: dict, second: dict) -> bool:
    """Whether every number that matches ``first`` is less than every number that matches ``second``."""
    most, least = first.get("maximum"), second.get("minimum")
    beyond, above = first.get("exclusiveMaximum"), second.get("exclusiveMinimum")
    return (
        _less(most, least)
        or _less(beyond, least, True)
        or _less(most, above, True)
        or _less(beyond, above, True)
    )


def _less(first: object, second: object, equal: bool = False) -> bool:
    numbers = all(type(value) in (int, float) for value in (first, second))
    return numbers and (first < second or (equal and first == second))
