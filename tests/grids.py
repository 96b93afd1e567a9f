"""Grids of cases of which only some are part of ``make test``."""

from collections.abc import Callable, Iterable

import pytest


def some(cases: Iterable, few: Callable[[object], bool]) -> list:
    """Cases for ``parametrize``. few: those that ``make test`` takes; the others are exhaustive."""
    return [
        case if few(case) else pytest.param(*_values(case), marks=pytest.mark.exhaustive)
        for case in cases
    ]


def _values(case: object) -> tuple:
    return case if isinstance(case, tuple) else (case,)
