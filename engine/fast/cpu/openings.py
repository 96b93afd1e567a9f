"""Graphs for the first pass over a text: over its prompt, and perhaps over a root and a draft.

Nothing was read before, so such a graph has no columns, and all of its sizes are fixed. OpenVINO computes it in about
half of the time of a graph whose sizes may vary.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.store import tried

SIZES = (16, 24, 32, 40, 48, 64, 80, 96, 128)
"""Rows of a first pass; a longer prompt is read by the graph for any number of rows."""
LOOKED = 17
"""Last rows after which a first pass gives logits: those of a root and 16 nodes."""


class Openings:
    """make(rows): compiles and compares a graph; raises whatever it finds wrong. sizes: ascending; each graph is made
    on first use."""

    def __init__(self, make: Callable[[int], Calls], sizes: Sequence[int]) -> None:
        self._make, self._sizes = make, sizes
        self._made: Family[Calls] = Family()

    def of(self, rows: int, ahead: bool = False) -> tuple[int, Calls] | None:
        """The number of rows, spare ones included, of a first pass over ``rows`` rows, and its graph; None if there is
        none. ahead: no pass wants it yet."""
        size = next((size for size in self._sizes if rows <= size), None)
        if size is None:
            return None

        def make() -> Calls | None:
            what = f"a first pass of {size} rows"
            return tried(lambda: self._make(size), what, logging.INFO)

        graph = self._made.of(size, make, ahead)
        return None if graph is None else (size, graph)
