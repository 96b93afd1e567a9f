"""Holds the compiled graphs of a process, except for one graph per model, within a budget of bytes.

Each compiled graph packs a copy of the weights for itself. A model needs one graph, which serves passes of all sizes;
every other graph only saves time. So these other graphs share one budget. A graph is compiled while there is room for
it. When there is no room, passes are computed without the graph, more slowly. Once many passes have lacked the same
graph, compiling it is worth the time: it is compiled, and the least recently used graphs are dropped.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Generic, Protocol, TypeVar

from engine.core.step import untimed
from engine.errors import UserError
from engine.fast.cpu.freed_memory import give_back

SETTING = "DRAFTSCOPE_GRAPH_MEMORY"
USUAL = "1 GB"
UNITS = {"MB": 10**6, "GB": 10**9}
LACKING = 300
"""The number of passes that must have lacked a graph before other graphs are dropped to make room for it. A graph saves
a pass about a millisecond, and compiling it takes some hundred times as long."""
AHEAD = 0.5
"""Share of the budget that graphs may fill if they are compiled in advance, before a pass needs them."""
SPARED = 0.15
"""Share of the budget that may be filled while a server, before it has visitors, tries the drafters that they may
use."""
MOST_NOTES = 4096  # graphs of which the budget remembers that passes lacked them


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)
Key = tuple[int, Hashable]


class Budget:
    """The compiled graphs that a process holds, of at most ``most`` bytes in all. Safe for several threads."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0
        self._share = 1.0
        self._held: OrderedDict[Key, Sized] = OrderedDict()
        self._lacked: OrderedDict[Key, int] = OrderedDict()
        self._lock, self._making = threading.RLock(), threading.RLock()

    def __len__(self) -> int:
        return len(self._held)

    def held(self, key: Key) -> Sized | None:
        """The graph with this key, which then counts as just used; None if it is not held."""
        with self._lock:
            entry = self._held.get(key)
            if entry is not None:
                self._held.move_to_end(key)
            return entry

    def lacks(self, key: Key, needed: int, ahead: bool) -> bool:
        """Whether a pass must do without this graph of about ``needed`` bytes, because there is no room. Each such
        answer is counted for the graph, unless ``ahead``. ahead: the graph would be compiled in advance, before a pass
        needs it."""
        with self._lock:
            most = self.most * self._share
            if needed > most:
                return True
            if self.used + needed <= most * (AHEAD if ahead else 1):
                return False
            lacked = self._lacked.pop(key, 0) + (not ahead)
            self._lacked[key] = lacked
            if len(self._lacked) > MOST_NOTES:
                self._lacked.popitem(last=False)
            return lacked <= LACKING

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Within this context, only a share SPARED of the budget is filled; the rest stays free for visitors'
        graphs."""
        self._share = SPARED
        try:
            yield
        finally:
            self._share = 1.0

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """Within this context, there is room for all graphs. A benchmark runs many drafters in turn in one process; in
        real use each of them has the whole budget for itself."""
        most, self.most = self.most, sys.maxsize
        try:
            yield
        finally:
            self.most = most

    @contextmanager
    def making(self, wait: bool) -> Iterator[bool]:
        """A context in which one thread at a time compiles graphs. The context's value is whether this thread may
        compile one. wait: whether to wait until no other thread compiles a graph; without waiting, the value is False
        while another thread does."""
        free = self._making.acquire(blocking=wait)
        try:
            yield free
        finally:
            if free:
                self._making.release()

    def put(self, key: Key, graph: Sized) -> bool:
        """Hold the graph, and drop the least recently used graphs until there is room. Returns False, without holding
        the graph, if it is larger than the budget."""
        with self._lock:
            self._lacked.pop(key, None)
            most, needed = self.most * self._share, graph.nbytes
            if needed > most:
                return False
            gone: list[Sized] = []
            while self._held and self.used + needed > most:
                self._let_go([next(iter(self._held), None)], gone)
            self._held[key] = graph
            self.used += needed
        if gone:
            gone.clear()
            give_back()
        return True

    def drop(self, family: int) -> None:
        """Drop all graphs of the ``Family`` with this number. Python calls this when it frees the family, which may
        happen in the middle of another ``drop`` or ``put``."""
        gone: list[Sized] = []
        with self._lock:
            self._let_go([key for key in list(self._held) if key[0] == family], gone)
            for key in [key for key in list(self._lacked) if key[0] == family]:
                del self._lacked[key]

    def _let_go(self, keys: Iterable[Key | None], gone: list[Sized]) -> None:
        """Remove the graphs with these keys, and append them to ``gone``. Keys whose graph has been dropped are
        ignored. The caller frees ``gone`` after it has released the lock, because freeing a graph may free families."""
        last = [graph for key in keys if (graph := self._held.pop(key, None)) is not None]
        gone += last
        freed = sum(graph.nbytes for graph in last)
        # not in one line: no family may be freed between reading and writing ``used``
        self.used -= freed


_families = count()


class Family(Generic[T]):
    """All graphs of the same kind that belong to the same model. The budget may drop any of them."""

    def __init__(self, budget: Budget | None = None) -> None:
        """budget: None for the budget of this process."""
        self._budget = graph_memory() if budget is None else budget
        self._number = next(_families)
        self._needed = 1  # bytes of a graph; unknown before the first was made
        self._refused: set[Hashable] = set()
        weakref.finalize(self, self._budget.drop, self._number).atexit = False

    def held(self, key: Hashable) -> T | None:
        """The graph if the budget holds it, else None."""
        return self._budget.held((self._number, key))

    def of(self, key: Hashable, make: Callable[[], T | None], ahead: bool = False) -> T | None:
        """Return the graph with this key. If the budget does not hold the graph but has room for it, compile it now.
        Return None if there is no room, if the graph cannot be used, or if another thread is compiling a graph and
        ``ahead`` is false.

        make: compiles the graph, or returns None if the graph cannot be used; then ``make`` is not called for this key
        again. ahead: compile the graph in advance, before a pass needs it.
        """
        budget, place = self._budget, (self._number, key)
        graph = budget.held(place)
        if graph is not None or key in self._refused or budget.lacks(place, self._needed, ahead):
            return graph
        with budget.making(wait=ahead) as free:
            if not free:  # another thread makes a graph; a pass goes on without
                return None
            graph = budget.held(place)
            if graph is not None:
                return graph
            with untimed():
                new_graph = make()
            if new_graph is None:
                self._refused.add(key)
                return None
            self._needed = new_graph.nbytes
            return new_graph if budget.put(place, new_graph) else None


@cache
def graph_memory() -> Budget:
    """The budget of this process. Raises UserError if the environment variable in SETTING is no number of MB or GB."""
    return Budget(wanted_bytes(os.environ.get(SETTING, "").strip() or USUAL))


def wanted_bytes(text: str) -> int:
    """The number of bytes that a text such as "1 GB", "1.5 GB" or "300 MB" states. Raises UserError for other texts."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(MB|GB)", text, re.IGNORECASE | re.ASCII)
    if match is None:
        raise UserError(f'{SETTING} must be a number of MB or GB, such as "{USUAL}", not {text!r}.')
    return int(float(match[1]) * UNITS[match[2].upper()])
