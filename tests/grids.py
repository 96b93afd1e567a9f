"""Grids of cases of which only some are part of ``make test``."""

from collections.abc import Callable, Iterable

import pytest


def some(cases: Iterable, few: Callable[[object], bool], whole: bool = False) -> list:
    """Return cases for ``parametrize``. few: whether ``make test`` takes a case; the other cases are exhaustive. whole:
    whether a case that is a tuple is one value, as a fixture wants it."""
    return [
        case if few(case) else pytest.param(*_values(case, whole), marks=pytest.mark.exhaustive)
        for case in cases
    ]


def _values(case: object, whole: bool) -> tuple:
    return case if isinstance(case, tuple) and not whole else (case,)
