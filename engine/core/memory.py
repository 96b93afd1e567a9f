"""The memory in which drafters keep data from one run to the next, for one visitor.

A memory is bounded in bytes, can be emptied, and is never shared: a drafter that learns from a text learns for the
visitor who wrote it.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

USUAL_LIMIT = 8 << 20  # bytes per visitor


class Store(ABC):
    """One drafter's part of a memory."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The number of bytes that the store holds now. Another thread may read it while the store is learning."""


S = TypeVar("S", bound=Store)


class Memory:
    """Stores by key. When the stores outgrow the limit, the least recently used store is deleted.

    Safe for several threads: a run may be cancelled, or the memory emptied, while another run is in a step.
    """

    def __init__(self, limit: int = USUAL_LIMIT) -> None:
        """limit: the most bytes of all stores together."""
        self.limit = limit
        self._stores: dict[object, Store] = {}
        self._lock = threading.RLock()

    def __deepcopy__(self, memo: dict) -> Memory:
        with self._lock:
            twin = Memory(self.limit)
            twin._stores = copy.deepcopy(self._stores, memo)
            return twin

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(store.nbytes for store in self._stores.values())

    def store(self, key: object, make: Callable[[], S]) -> S:
        """The store of this key; if there is none, a new store that ``make`` returns.

        The key must name everything that a store depends on: the drafter, its target, its options. A store that is by
        itself larger than the limit serves this run and is not kept.
        """
        with self._lock:
            store = self._stores.pop(key, None) or make()
            self._stores[key] = store  # the most recently used store stands last
            self.trim()
            return store

    def trim(self) -> None:
        """Delete stores, the least recently used first, until the others fit the limit. Call this after learning."""
        with self._lock:
            while self._stores and self.nbytes > self.limit:
                del self._stores[next(iter(self._stores))]

    def reset(self) -> None:
        """Delete all stores."""
        with self._lock:
            self._stores.clear()
