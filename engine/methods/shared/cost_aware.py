"""A tree grows while one more node is expected to bring more than it costs.

SMART (Wang and Zhou, "SMART: When is it Actually Worth Expanding a Speculative Tree?", 2026): a node is worth checking if
the tokens that it adds for each millisecond that it costs are more than those of the tree as a whole. The chance that a
node is kept is taken from q, as the tree's own order is. The cost of a pass over so many nodes is measured on this
machine when the models are opened (``engine.sizes.verify_cost``), that of drafting in the steps before.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Series
from engine.core.options import switch

COST_AWARE = switch("cost_aware", False, "Cost-aware", advanced=True).meaning(
    "Keep a node only while the tokens that it is expected to add are worth what it costs here, as measured (SMART). A size "
    "of 0 is then the largest that is measured."
)
USUAL = {0: 1.0, 16: 2.0}
"""Where nothing was measured: a pass over 16 nodes and the root takes twice the time of one over the root."""
DRAFTING = 0.4
"""The first guess at the time of drafting, in passes over the root."""
LEARNED = 0.2
"""Weight of a step's time in the mean of those of drafting."""


class StepCosts:
    """measured: milliseconds of a pass by the nodes of the tree; {}: the usual ones, in passes."""

    def __init__(self, measured: Mapping[int, float]) -> None:
        known = sorted((measured or USUAL).items())
        self._sizes = [size for size, _ in known]
        # a larger pass that seems to cost less is noise
        self._costs = list(accumulate((cost for _, cost in known), max))
        self._drafting = DRAFTING * self._costs[0]
        self._learns = bool(measured)

    @classmethod
    def of(cls, settings: Mapping[str, object], models) -> StepCosts | None:
        """None for a drafter whose settings do not ask for them."""
        return cls(models.costs) if settings.get(COST_AWARE.name) else None

    def at(self, nodes: int) -> float:
        """The cost of a step whose tree has so many nodes; between two measured sizes, and beyond them, on a line."""
        place = min(max(bisect(self._sizes, nodes), 1), len(self._sizes) - 1)
        low, high = self._sizes[place - 1 : place + 1]
        less, more = self._costs[place - 1 : place + 1]
        return self._drafting + less + (more - less) * (nodes - low) / (high - low)

    def pays(self, tokens: float, nodes: int, chance: float) -> bool:
        """Whether a tree of so many nodes, from which so many tokens are expected, should get a node that is kept with this
        chance. The first node is always worth it: without one there is no draft."""
        rate = tokens / self.at(nodes)
        return not nodes or chance >= rate * (self.at(nodes + 1) - self.at(nodes))

    def best(self, chances: Sequence[float]) -> int:
        """How many nodes to keep of a tree whose nodes are kept with these chances, the likeliest first: those with which
        the tokens of a millisecond are most."""
        rates = self.rates(chances)[1:]
        return max(range(len(rates)), key=rates.__getitem__) + 1 if rates else 0

    def rates(self, chances: Sequence[float]) -> list[float]:
        """Expected tokens per unit of cost, without a node and with each number of them."""
        tokens = accumulate(chances, initial=1.0)
        return [each / self.at(nodes) for nodes, each in enumerate(tokens)]

    def see(self, kept: Kept) -> None:
        """Take note of the time of drafting."""
        spent = kept.milliseconds.get("draft")
        if self._learns and spent is not None:
            self._drafting += LEARNED * (spent - self._drafting)

    def shown(self, chances: Sequence[float], kept: int) -> Curve:
        """chances: of the nodes, and behind them of those that were left out."""
        ends = "one more would cost more than it is expected to bring."
        rates = self.rates(chances)
        return Curve(
            title="Expected tokens for what a step costs",
            x=list(range(len(rates))),
            series=[Series("against plain decoding", [rate * self._costs[0] for rate in rates])],
            x_label="nodes of the tree",
            y_label="times",
            note=f"The tree has {kept} nodes" + (f": {ends}" if kept < len(chances) else "."),
        )
