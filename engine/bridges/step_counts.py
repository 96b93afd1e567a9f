"""Counts of acceptance by position, from the numbers of drafted and kept tokens of each step."""

from __future__ import annotations

from collections import Counter

MOST_DRAFTED = 1024  # tokens of one step
MOST_COUNT = 1 << 53
"""The largest count that JSON keeps exactly in a browser."""


class StepCounts:
    """Steps by the number of tokens drafted (None: not known) and kept."""

    def __init__(self) -> None:
        self.steps: Counter[tuple[int | None, int]] = Counter()

    def add(self, drafted: object, kept: object, times: object = 1) -> None:
        """Raises ValueError for numbers that no step can have."""
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
        """None where the length of a draft is not known."""
        if any(drafted is None for drafted, _ in self.steps):
            return None
        return sum(drafted * count for (drafted, _), count in self.steps.items())

    def positions(self) -> list[dict]:
        """One entry a position, as in an ``acceptance`` line. Without ``reached`` where a draft's length is not known."""
        known = self.drafted is not None
        reached, accepted = (
            Counter(),
            Counter(),
        )  # by the last position that a step reaches, or keeps
        for (drafted, kept), count in self.steps.items():
            accepted[kept] += count
            if known:
                reached[min(drafted, kept + 1)] += count
        last = max((drafted if known else kept for drafted, kept in self.steps), default=0)
        found, still = [], [self.total, self.total]
        for place in range(1, last + 1):
            still = [still[0] - reached[place - 1], still[1] - accepted[place - 1]]
            entry = {"position": place} | ({"reached": still[0]} if known else {})
            found.append(entry | {"accepted": still[1]})
        return found


def whole(value: object, most: int = MOST_COUNT) -> int:
    """A count. Raises ValueError, whose message ends a sentence, for anything else; a float may be one, as in Prometheus's text."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    if value != int(value):
        raise ValueError(f"{value!r} is no count")
    return int(value)
