"""How much a text repeats itself: the share of its runs of four tokens that occurred in it
before."""

from __future__ import annotations

RUN = 4


def repeated_share(tokens: list[int], run: int = RUN) -> float:
    """0 where every run is new; a text shorter than a run repeats nothing."""
    runs = [tuple(tokens[i : i + run]) for i in range(len(tokens) - run + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0
