"""A progress bar on standard error that shows the time left."""

import sys
import time
from typing import Self, TextIO

WIDTH = 30


class Progress:
    """Counts to ``total``; draws on a terminal and is silent elsewhere. A context that wipes the bar at its end."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total, self._done = total, 0
        self._stream = stream or sys.stderr
        self._began = time.monotonic()

    def tick(self) -> None:
        self._done += 1
        self._draw(self.line())

    def line(self) -> str:
        share = self._done / self._total
        left = int((time.monotonic() - self._began) * (1 / share - 1)) if share else 0
        bar = "#" * int(share * WIDTH)
        return f"[{bar:{WIDTH}}] {self._done}/{self._total}, {left // 60}:{left % 60:02d} left"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self._draw("")

    def _draw(self, line: str) -> None:
        if self._stream.isatty():
            self._stream.write(f"\r{line}\033[K")
            self._stream.flush()
