"""What drafters may keep from one run to the next, for one visitor.

A memory is bounded in bytes, can be emptied, and is never shared: a drafter that learns from a text
learns for the visitor who wrote it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

USUAL_LIMIT = 8 << 20  # bytes a visitor


class Store(ABC):
    """One drafter's part of a memory."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that it holds now."""


S = TypeVar("S", bound=Store)


class Memory:
    """Stores by key. When they outgrow the limit, the store that was used longest ago is forgotten."""

    def __init__(self, limit: int = USUAL_LIMIT) -> None:
        """limit: bytes."""
        self.limit = limit
        self._stores: dict[object, Store] = {}

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in self._stores.values())

    def store(self, key: object, make: Callable[[], S]) -> S:
        """The store of this key, made if there is none.

        The key must name all that a store depends on: the drafter, its target, its options. A store
        that alone is larger than the limit serves this run and is not kept.
        """
        found = self._stores.pop(key, None) or make()
        self._stores[key] = found  # the most recently used store stands last
        self.trim()
        return found

    def trim(self) -> None:
        """Forget stores, oldest use first, until the rest fits. To be called after learning."""
        while self._stores and self.nbytes > self.limit:
            del self._stores[next(iter(self._stores))]

    def reset(self) -> None:
        """Forget everything."""
        self._stores.clear()
