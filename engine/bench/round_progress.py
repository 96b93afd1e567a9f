"""A progress bar on standard error that shows the time left."""

import sys
import time
from typing import TextIO

WIDTH = 30


class Progress:
    """Counts to ``total``; draws on a terminal and is silent elsewhere."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total, self._done = total, 0
        self._stream = stream or sys.stderr
        self._began = time.monotonic()
        self._shown = self._stream.isatty()

    def tick(self) -> None:
        self._done += 1
        if self._shown:
            self._stream.write(f"\r{self.line()}\033[K")
            self._stream.flush()

    def line(self) -> str:
        share = self._done / self._total
        left = (time.monotonic() - self._began) * (1 / share - 1) if share else 0.0
        bar = "#" * int(share * WIDTH)
        return f"[{bar:{WIDTH}}] {self._done}/{self._total}, {_clock(left)} left"

    def close(self) -> None:
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
