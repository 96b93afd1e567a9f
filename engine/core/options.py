"""Typed options, declared once by a drafter or verifier.

The command line checks `--option name=value` against them, the page builds its controls from
them, and the trace stores the resolved values.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from engine.errors import UserError

Value = int | float | bool | str


@dataclass(frozen=True)
class Option:
    """One setting: its name, type, default, range and help text.

    label: its name on the page; if empty, ``name`` is used. advanced: whether the page folds it away at first.
    only: ``greedy`` or ``sampled`` if the setting has an effect in that kind of decoding only.
    depends_on: another option, and the value that it must have for this option to have an effect.
    """

    name: str
    type: Literal["int", "float", "bool", "choice"]
    default: Value
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None
    label: str = ""
    advanced: bool = False
    only: Literal["greedy", "sampled"] | None = None
    depends_on: tuple[str, Value] | None = None

    def to_dict(self) -> dict:
        return asdict(self)

    def meaning(self, help: str) -> "Option":
        """A copy of the option with the help text ``help``."""
        return replace(self, help=help)

    def parse(self, raw: object) -> Value:
        """Convert a typed or sent value to this option's type. Raises UserError if the value does not fit."""
        value = _PARSERS[self.type](raw)
        if value is None or (self.choices and value not in self.choices):
            raise UserError(f"Option {self.name} must be {self._values()}, not {raw!r}.")
        if self.minimum is not None and not self.minimum <= value <= self.maximum:
            raise UserError(f"Option {self.name} must be {self._values()}, not {raw!r}.")
        return value

    def _values(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type == "bool":
            return "true or false"
        noun = {"int": "a whole number", "float": "a number"}[self.type]
        return f"{noun} from {self.minimum} to {self.maximum}"


def whole(name: str, default: int, least: int, most: int, label: str = "", **more) -> Option:
    """An option whose value is a whole number from ``least`` to ``most``. more: further fields of ``Option``."""
    return Option(name, "int", default, "", least, most, label=label, **more)


def number(name: str, default: float, least: float, most: float, label: str = "", **more) -> Option:
    return Option(name, "float", default, "", least, most, label=label, **more)


def switch(name: str, default: bool, label: str = "", **more) -> Option:
    return Option(name, "bool", default, "", label=label, **more)


def choice(name: str, default: str, choices: Sequence[str], label: str = "", **more) -> Option:
    return Option(name, "choice", default, "", choices=tuple(choices), label=label, **more)


def _parse_int(raw: object) -> int | None:
    number = _parse_float(raw)
    return int(number) if number is not None and number.is_integer() else None


def _parse_float(raw: object) -> float | None:
    if isinstance(raw, bool):
        return None
    try:
        number = float(raw)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _parse_bool(raw: object) -> bool | None:
    if isinstance(raw, bool):
        return raw
    return {"true": True, "false": False, "1": True, "0": False}.get(str(raw).lower())


def _parse_choice(raw: object) -> str | None:
    return raw if isinstance(raw, str) else None


_PARSERS = {"int": _parse_int, "float": _parse_float, "bool": _parse_bool, "choice": _parse_choice}


def resolve(
    owner: str, declared: Iterable[Option], values: Mapping[str, object]
) -> dict[str, Value]:
    """The value of every declared option: from ``values``, or else its default.

    owner: the drafter or rule that has the options, for messages. Raises UserError for an unknown name or a value that
    does not fit.
    """
    by_name = {option.name: option for option in declared}
    for name in values:
        if name not in by_name:
            names = ", ".join(by_name) or "none"
            raise UserError(f"{owner} has no option {name!r}; its options are: {names}.")
    return {
        name: option.parse(values[name]) if name in values else option.default
        for name, option in by_name.items()
    }
