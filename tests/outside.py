"""Methods from a folder outside the repository, for one test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import methods, rules
from engine.finding import OUTSIDE
from engine.parts import kinds
from engine.training.students import outside_students
from presets.methods import outside_cards

CACHES = (
    methods.drafters,
    methods._found,
    rules._found,
    kinds._found,
    outside_cards,
    outside_students,
)


@contextmanager
def outside_methods(folder: Path, monkeypatch) -> Iterator[None]:
    monkeypatch.setenv(OUTSIDE, str(folder))
    for cached in CACHES:
        cached.cache_clear()
    yield
    monkeypatch.delenv(OUTSIDE)
    for cached in CACHES:
        cached.cache_clear()
