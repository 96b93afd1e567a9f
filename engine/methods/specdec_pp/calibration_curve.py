"""A curve that shows whether predicted chances come true: for each interval of predictions, the share that came
true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.core.exhibits import Curve, Series

BINS = 10


@dataclass
class CalibrationCurve:
    """Counts of predictions. counts: for each interval of the predicted chance, the number of predictions. true: for
    each interval, how many of its predictions came true."""

    counts: list[float] = field(default_factory=lambda: [0] * BINS)
    true: list[float] = field(default_factory=lambda: [0] * BINS)

    def see(self, seen: Iterable[tuple[float, float]]) -> None:
        """Add predictions. seen: pairs of a predicted chance and the outcome, which is 1 if the event happened and 0 if
        it did not; numbers between 0 and 1 are possible."""
        for chance, happened in seen:
            place = min(int(chance * BINS), BINS - 1)
            self.counts[place] += 1
            self.true[place] += happened

    def snapshot(self) -> CalibrationCurve:
        return CalibrationCurve(list(self.counts), list(self.true))

    def shares(self) -> list[float | None]:
        """Return, for each interval, the share of its predictions that came true; None for an interval without
        predictions."""
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
