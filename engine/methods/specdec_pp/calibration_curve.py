"""Whether predicted chances come true: the share of predictions that did, by bin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.core.exhibits import Curve, Series

BINS = 10


@dataclass
class CalibrationCurve:
    """counts, true: by bin, how many predictions fell into it and how many of these came true."""

    counts: list[float] = field(default_factory=lambda: [0] * BINS)
    true: list[float] = field(default_factory=lambda: [0] * BINS)

    def see(self, seen: Iterable[tuple[float, float]]) -> None:
        """seen: pairs of a predicted chance and the outcome, from 0 (did not happen) to 1."""
        for chance, happened in seen:
            place = min(int(chance * BINS), BINS - 1)
            self.counts[place] += 1
            self.true[place] += happened

    def snapshot(self) -> CalibrationCurve:
        return CalibrationCurve(list(self.counts), list(self.true))

    def shares(self) -> list[float | None]:
        """The share that came true, by bin; None where nothing was predicted."""
        pairs = zip(self.true, self.counts, strict=True)
        return [true / count if count else None for true, count in pairs]

    def shown(self) -> Curve:
        middles = [(place + 0.5) / BINS for place in range(BINS)]
        return Curve(
            "Predicted chances and outcomes",
            middles,
            [Series("kept", self.shares()), Series("as predicted", middles)],
            x_label="predicted chance to be kept",
            y_label="share kept",
            note=f"{sum(self.counts):,.0f} tokens were judged. Training counts a refused token several times, so the "
            "predictions are low, and the share kept lies above the diagonal.",
        )
