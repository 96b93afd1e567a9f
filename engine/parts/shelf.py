"""A cache of opened models: each is opened once per process and kept until it is dropped."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

M = TypeVar("M")


class Info(NamedTuple):
    hits: int
    misses: int
    held: int


class Shelf(Generic[M]):
    """Opens models and keeps them. If it keeps too many, it drops the least recently used one."""

    def __init__(self, opens: Callable[..., M], most: int) -> None:
        """opens(path, *how): opens a model. most: the most models that are kept at once."""
        self._opens, self._most = opens, most
        self._held: OrderedDict[tuple, M] = OrderedDict()
        self._hits = self._misses = 0

    def __call__(self, path: str, *how: object) -> M:
        key = (path, *how)
        if key in self._held:
            self._hits += 1
            self._held.move_to_end(key)
            return self._held[key]
        self._misses += 1
        model = self._held[key] = self._opens(path, *how)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        return model

    def forget(self, path: str) -> None:
        """Drop the models of this path. A run that still uses a dropped model keeps it until the run ends."""
        for key in [key for key in self._held if key[0] == path]:
            del self._held[key]

    def cache_clear(self) -> None:
        self._held.clear()
        self._hits = self._misses = 0

    def cache_info(self) -> Info:
        return Info(self._hits, self._misses, len(self._held))
