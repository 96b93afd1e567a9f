"""The cost of a pass on this machine, by rows, texts and length of the text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.model.language_model import LanguageModel
from engine.sizes.verify_cost import prepared

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
JOINT_ROWS = (1, 2, 4, 8, 16, 32, 64)
"""Of each text in a pass over several; such passes are padded to one of these numbers."""
LONG_ROWS, DRAFT_ROWS = (1, 8), (1, 2, 4, 8)
MOST_ROWS = 256
"""Of all texts in a pass."""
DEAREST = 1500.0
"""Milliseconds; where a pass takes longer, passes over more rows are not measured."""

Place = tuple[str, int, int]
"""``target`` or ``draft``, texts in the pass, tokens that each has read."""


@dataclass
class CostTable:
    """usual: the length of a text for which costs are looked up. entries: milliseconds by place and rows. longest: the length of
    the longest text; the buffers of several texts at a time have its size.
    """

    usual: int
    entries: dict[Place, dict[int, float]] = field(default_factory=dict)
    longest: int = 0

    def add(self, line: Mapping) -> None:
        """Raises KeyError, TypeError or ValueError for a line that is no ``cost`` line."""
        place = str(line["what"]), int(line["texts"]), int(line["context"])
        self.entries.setdefault(place, {})[int(line["rows"])] = float(line["milliseconds"])

    def milliseconds(self, rows: float, texts: int) -> float | None:
        """Milliseconds of a target pass over ``rows`` rows of each of ``texts`` texts; None if no such pass was measured."""
        costs = self.entries.get(("target", texts, self._context(texts)))
        if not costs or 1 not in costs:
            return None
        if texts > 1:
            rows = next((size for size in JOINT_ROWS if size >= rows), rows)
        return interpolated(costs, rows)

    def _context(self, texts: int) -> int:
        return self.usual if texts == 1 else max(self.usual, self.longest)

    def of_one_text(self, target: LanguageModel, draft: LanguageModel | None) -> Iterator[dict]:
        """Measure the missing costs, a ``cost`` line each."""
        longest = min(target.max_context - max(ROWS) - 1, 4 * self.usual)
        yield from self._measured("target", target, 1, self.usual, ROWS)
        if longest > self.usual:
            yield from self._measured("target", target, 1, longest, LONG_ROWS)
        if draft is not None:
            yield from self._measured("draft", draft, 1, self.usual, DRAFT_ROWS)

    def of_several(self, target: LanguageModel, texts: Sequence[int], most: int) -> Iterator[dict]:
        """Measure passes over several texts, a ``cost`` line each. target: the target as opened for several texts. texts: the numbers
        of texts. most: the most rows that one text needs."""
        for count in texts:
            if count > 1:
                rows = [
                    size for size in JOINT_ROWS if size < 2 * most and size * count <= MOST_ROWS
                ]
                yield from self._measured("target", target, count, self._context(count), rows)

    def _measured(
        self, what: str, model: LanguageModel, texts: int, context: int, rows: Sequence[int]
    ) -> Iterator[dict]:
        costs = self.entries.get((what, texts, context), {})
        if all(size in costs for size in rows) or max(costs.values(), default=0.0) > DEAREST:
            return
        passes = prepared(model, texts, context, rows)
        for size in rows:
            if size in costs:
                continue
            spent, repeats = passes.usual(size)
            line = {"kind": "cost", "what": what, "rows": size, "texts": texts, "context": context}
            line |= {"milliseconds": round(spent, 4), "repeats": repeats}
            self.add(line)
            yield line
            if spent > DEAREST:
                return


def interpolated(costs: Mapping[int, float], at: float) -> float:
    """Between measured points along a line; beyond the last, along the line from the first to the last."""
    places = sorted(costs)
    if at <= places[0] or len(places) == 1:
        return costs[places[0]]
    after = bisect_left(places, at)
    low, high = (
        (places[0], places[-1]) if after == len(places) else (places[after - 1], places[after])
    )
    return costs[low] + (costs[high] - costs[low]) * (at - low) / (high - low)
