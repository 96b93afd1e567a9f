"""The measured cost of a pass on this machine, by the number of rows (token positions that the pass computes), the
number of texts that share the pass, and the tokens that each text already has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from engine.model.language_model import LanguageModel
from engine.sizes.verify_cost import prepared

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
JOINT_ROWS = (1, 2, 4, 8, 16, 32, 64)
"""For how many rows of each text a pass over several texts is measured; padded passes are padded to the next of these
numbers."""
LONG_ROWS, DRAFT_ROWS = (1, 8), (1, 2, 4, 8)
MOST_ROWS = 256
"""The most rows of a measured pass over several texts, summed over the texts."""
DEAREST = 1500.0
"""Once a pass takes more than this many milliseconds, passes over more rows are not measured."""

Place = tuple[str, int, int]
"""("target" or "draft" for the draft model, number of texts in the pass, number of tokens that each text already
has)."""


@dataclass
class CostTable:
    """Measured costs of passes. usual: the length in tokens of a typical text, at which costs are looked up. entries:
    place -> number of rows -> milliseconds. longest: the length in tokens of the longest text, if a pass over several
    texts is padded (``LanguageModel.pads_texts``): to buffers of that length for every text, and to as many rows as the largest draft
    needs. It is 0 if such a pass has no more rows and columns than the texts need together.
    """

    usual: int
    entries: dict[Place, dict[int, float]] = field(default_factory=dict)
    longest: int = 0

    def add(self, line: Mapping) -> None:
        """Add the measurement in a ``cost`` line. Raises KeyError, TypeError or ValueError for any other line."""
        place = str(line["what"]), int(line["texts"]), int(line["context"])
        self.entries.setdefault(place, {})[int(line["rows"])] = float(line["milliseconds"])

    def milliseconds(self, rows: float, texts: int) -> float | None:
        """The milliseconds of a pass of the target over ``rows`` rows of each of ``texts`` texts, interpolated between
        measured numbers of rows; None if passes over this number of texts were not measured."""
        costs = self.entries.get(("target", texts, self._context(texts)))
        if not costs or 1 not in costs:
            return None
        if texts > 1 and self.longest:
            rows = next((size for size in JOINT_ROWS if size >= rows), rows)
        return interpolated(costs, rows)

    def _context(self, texts: int) -> int:
        return self.usual if texts == 1 else max(self.usual, self.longest)

    def of_one_text(self, target: LanguageModel, draft: LanguageModel | None) -> Iterator[dict]:
        """Measure the costs for one text that are not in the table yet; yields a ``cost`` line for each. draft: the
        draft model, or None."""
        longest = min(target.max_context - max(ROWS) - 1, 4 * self.usual)
        yield from self._measured("target", target, 1, self.usual, ROWS)
        if longest > self.usual:
            yield from self._measured("target", target, 1, longest, LONG_ROWS)
        if draft is not None:
            yield from self._measured("draft", draft, 1, self.usual, DRAFT_ROWS)

    def of_several(self, target: LanguageModel, texts: Sequence[int], most: int) -> Iterator[dict]:
        """Measure the costs of passes over several texts that are not in the table yet; yields a ``cost`` line for
        each. texts: the numbers of texts. most: the most rows that one
        text needs."""
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
        lacking = [size for size in rows if size not in costs]
        times = prepared(model, texts, context, rows).in_turn(lacking, DEAREST, sure=texts > 1)
        for size, spent in times.items():
            line = {"kind": "cost", "what": what, "rows": size, "texts": texts, "context": context}
            line |= {"milliseconds": round(median(spent), 4), "repeats": len(spent)}
            self.add(line)
            yield line


def interpolated(costs: Mapping[int, float], at: float) -> float:
    """The cost at the number of rows ``at``: linear between the two neighbouring measured numbers. Beyond the largest
    measured number, it lies on the line through the first and the last measured point."""
    places = sorted(costs)
    if at <= places[0] or len(places) == 1:
        return costs[places[0]]
    after = bisect_left(places, at)
    low, high = (
        (places[0], places[-1]) if after == len(places) else (places[after - 1], places[after])
    )
    return costs[low] + (costs[high] - costs[low]) * (at - low) / (high - low)
