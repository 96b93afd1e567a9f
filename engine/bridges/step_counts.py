"""Acceptance by position, counted from the numbers of drafted and kept tokens of each step."""

from __future__ import annotations

from collections import Counter

MOST_DRAFTED = 1024  # tokens of one step
MOST_COUNT = 1 << 53
"""The largest count that a browser reads exactly from JSON."""


class StepCounts:
    """Counts of steps by (number of tokens drafted or None if unknown, number of tokens kept)."""

    def __init__(self) -> None:
        self.steps: Counter[tuple[int | None, int]] = Counter()

    def add(self, drafted: object, kept: object, times: object = 1) -> None:
        """Add ``times`` steps. Raises ValueError for impossible numbers."""
        if drafted is not None:
            drafted = whole(drafted, MOST_DRAFTED)
        kept = whole(kept, MOST_DRAFTED)
        if drafted is not None and kept > drafted:
            raise ValueError(f"{kept} tokens are kept of {drafted} drafted ones")
        self.steps[drafted, kept] += whole(times)

    @property
    def total(self) -> int:
        return self.steps.total()

    @property
    def accepted(self) -> int:
        return sum(kept * count for (_, kept), count in self.steps.items())

    @property
    def drafted(self) -> int | None:
        """The number of drafted tokens; None if the length of a draft is not known."""
        if any(drafted is None for drafted, _ in self.steps):
            return None
        return sum(drafted * count for (drafted, _), count in self.steps.items())

    def positions(self) -> list[dict]:
        """One entry per position, as in an ``acceptance`` line; without ``reached`` if the length of a draft is not
        known."""
        has_lengths = self.drafted is not None
        reached, accepted = (
            Counter(),
            Counter(),
        )  # numbers of steps by the last position reached, and by the last position kept
        for (drafted, kept), count in self.steps.items():
            accepted[kept] += count
            if has_lengths:
                reached[min(drafted, kept + 1)] += count
        last = max((drafted if has_lengths else kept for drafted, kept in self.steps), default=0)
        entries, still = [], [self.total, self.total]
        for place in range(1, last + 1):
            still = [still[0] - reached[place - 1], still[1] - accepted[place - 1]]
            entry = {"position": place} | ({"reached": still[0]} if has_lengths else {})
            entries.append(entry | {"accepted": still[1]})
        return entries


def whole(value: object, most: int = MOST_COUNT) -> int:
    """The value as an int. A float without a fraction is accepted, because Prometheus's text has such floats. Anything
    but a number from 0 to ``most`` raises ValueError, whose message ends a sentence."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    if value != int(value):
        raise ValueError(f"{value!r} is no count")
    return int(value)
