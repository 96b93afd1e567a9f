"""Exhibits: data, typed by kind, with which a drafter or a rule explains a step.

Token ids become text only in the recorder, so a cell that holds a token id is a ``Token``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import ClassVar


@dataclass(frozen=True)
class Token:
    """A token id that the recorder writes as {"token", "piece"}."""

    id: int


Cell = str | int | float | bool | None | Token


@dataclass(frozen=True)
class Exhibit:
    """The base of all exhibits. title: a few words. note: one sentence, or empty. meter: whether the recorder measured
    it."""

    kind: ClassVar[str]
    title: str
    note: str = field(default="", kw_only=True)
    meter: bool = field(default=False, kw_only=True)

    def to_dict(self, piece: Callable[[int], str]) -> dict:
        """The exhibit in the form in which the trace stores it. piece: returns the text of a token id."""
        content: dict = {"kind": self.kind, "title": self.title}
        for name in names(type(self)):
            if name not in ("title", "note", "meter"):
                content[name] = plain(getattr(self, name), piece)
        return (
            content
            | ({"note": self.note} if self.note else {})
            | ({"meter": True} if self.meter else {})
        )


@dataclass(frozen=True)
class Words(Exhibit):
    """Lines of plain words; a line is a text or a sequence of texts and tokens."""

    kind = "words"
    lines: Sequence[str | Sequence[Cell]]


@dataclass(frozen=True)
class Table(Exhibit):
    kind = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Matrix(Exhibit):
    """Numbers by row and column. values: one row per row label; each has one number or None per column label."""

    kind = "matrix"
    rows: Sequence[Cell]
    columns: Sequence[Cell]
    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Choice:
    """A token in a column of a lattice, and its probability."""

    token: int
    p: float


@dataclass(frozen=True)
class Lattice(Exhibit):
    """Choices at consecutive positions, and a path through them. columns: the choices of each position. path: the index
    chosen in each column."""

    kind = "lattice"
    columns: Sequence[Sequence[Choice]]
    path: Sequence[int]


@dataclass(frozen=True)
class Layer:
    """One layer of the target at a step. state: run | skipped | exit | adapter."""

    state: str
    value: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Layers(Exhibit):
    """The target's layers, lowest first."""

    kind = "layers"
    layers: Sequence[Layer]


@dataclass(frozen=True)
class Gauge(Exhibit):
    """One number on a scale. mark: a second number on the scale, for comparison."""

    kind = "gauge"
    value: float | None
    minimum: float = 0.0
    maximum: float = 1.0
    mark: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Series:
    name: str
    y: Sequence[float | None]


@dataclass(frozen=True)
class Curve(Exhibit):
    """Lines over one x axis. mark: a place on the axis to mark."""

    kind = "curve"
    x: Sequence[float]
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    mark: float | None = None


@dataclass(frozen=True)
class Cloud:
    """Points of one kind. points: [x, y] each. name: a cloud named accepted, rejected or recovered has the colour of
    such tokens."""

    name: str
    points: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Panel:
    """Clouds drawn in one frame."""

    name: str
    clouds: Sequence[Cloud]


@dataclass(frozen=True)
class Clouds(Exhibit):
    """Panels of clouds side by side, with the same axes."""

    kind = "clouds"
    panels: Sequence[Panel]


class Later:
    """An exhibit whose content is computed only when the run is recorded, because computing it takes time.

    make: called after the step; the values that it uses must not have changed since the step was drafted.
    """

    def __init__(self, make: Callable[[], Exhibit]) -> None:
        self.make = make

    def to_dict(self, piece: Callable[[int], str]) -> dict:
        """Make the exhibit and return it as ``Exhibit.to_dict`` does."""
        return self.make().to_dict(piece)


@cache
def names(cls: type) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    return tuple(entry.name for entry in fields(cls))


def plain(value: object, piece: Callable[[int], str]) -> object:
    """Nested cells as JSON values. Numbers have seven significant digits; NaN and infinity become None."""
    kind = type(value)  # a quick test of the commonest types, before the slower match
    if kind is float:
        return _number(value)
    if kind in _AS_IT_IS:
        return value
    if kind is list or kind is tuple:
        return [plain(entry, piece) for entry in value]
    match value:
        case Token(id=token):
            return {"token": token, "piece": piece(token)}
        case Choice(token=token, p=p):
            return {"token": token, "piece": piece(token), "p": plain(p, piece)}
        case Layer() | Series() | Cloud() | Panel():
            pairs = ((name, getattr(value, name)) for name in names(kind))
            return {name: plain(entry, piece) for name, entry in pairs if entry != ""}
        case float():
            return _number(value)
        case bool() | int() | str():
            return value
        case _:
            return [plain(entry, piece) for entry in value]


_AS_IT_IS = {int, str, bool, type(None)}


def _number(value: float) -> float | None:
    return float(f"{value:.7g}") if abs(value) < float("inf") else None
