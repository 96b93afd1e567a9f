"""The progress of a training, by the clock or by tokens, and the learning rate that goes with it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Budget:
    """Give `minutes` (the wall clock, resumed time included) or `tokens`. `progress` runs from 0 to 1."""

    minutes: float | None = None
    tokens: int | None = None
    spent_seconds: float = 0.0
    spent_tokens: int = 0
    _since: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        return self.spent_seconds + time.monotonic() - self._since

    def progress(self) -> float:
        if self.tokens is not None:
            return min(1.0, self.spent_tokens / self.tokens)
        return min(1.0, self.seconds() / (60 * self.minutes))

    def part(self, share: float) -> Budget:
        """A fresh budget of this share."""
        minutes, tokens = self.minutes, self.tokens
        return Budget(
            None if minutes is None else share * minutes,
            None if tokens is None else round(share * tokens),
        )

    def state_dict(self) -> dict:
        return {"spent_seconds": self.seconds(), "spent_tokens": self.spent_tokens}

    def load_state_dict(self, saved: dict) -> None:
        self.spent_seconds, self.spent_tokens = saved["spent_seconds"], saved["spent_tokens"]
        self._since = time.monotonic()


def rate_scale(
    progress: float, warmup: float = 0.02, decay_from: float = 0.55, floor: float = 0.03
) -> float:
    """Warm up, stay, decay linearly (WSD)."""
    if progress < warmup:
        return max(0.05, progress / warmup)
    if progress < decay_from:
        return 1.0
    return floor + (1 - floor) * (1 - progress) / (1 - decay_from)
