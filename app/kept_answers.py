"""Keeps the traces of answers to programs for a while, so that the page can show those runs step by step.

The traces are bounded in bytes: one address may fill a quarter, and the oldest are dropped first. Anyone who knows an
answer's name can see its run.
"""

import threading
import time
import zlib
from collections import OrderedDict
from typing import NamedTuple

from app.settings import LIMITS, Limits

SHARE = 4


class _Kept(NamedTuple):
    address: str
    packed: bytes
    since: float


class KeptAnswers:
    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, name: str, address: str, trace: str) -> None:
        """Keep the finished trace of the answer of this name, unless it alone is larger than the address's share."""
        most = self._limits.answers_megabytes * 1_000_000
        packed = zlib.compress(trace.encode("utf-8"), 1)
        with self._lock:
            self._kept[name] = _Kept(address, packed, time.monotonic())
            self._bound(most // SHARE, address)
            self._bound(most)

    def trace(self, name: str) -> str | None:
        """Return the trace of the answer of this name, or None if it is not kept."""
        self.sweep()
        with self._lock:
            kept = self._kept.get(name)
        return None if kept is None else zlib.decompress(kept.packed).decode("utf-8")

    def sweep(self) -> None:
        """Drop the traces that are older than ``kept_seconds``."""
        oldest = time.monotonic() - self._limits.kept_seconds
        with self._lock:
            while self._kept and next(iter(self._kept.values())).since < oldest:
                self._kept.popitem(last=False)

    def _bound(self, most: int, address: str | None = None) -> None:
        """Drop the oldest traces, of this address or (None) of all, until the rest take at most ``most`` bytes."""
        theirs = [name for name, kept in self._kept.items() if address in (None, kept.address)]
        size = sum(len(self._kept[name].packed) for name in theirs)
        for name in theirs:
            if size <= most:
                return
            size -= len(self._kept.pop(name).packed)


kept_answers = KeptAnswers()
