"""Cuts a draft tree where one more node is expected to bring less than it costs.

SMART (Wang and Zhou, "SMART: When is it Actually Worth Expanding a Speculative Tree?", 2026): a node is worth checking if
the tokens that it adds for each millisecond that it costs are more than those of the tree as a whole. The chance that a
node is accepted is taken from q, as is the order of the nodes. The cost of a verify pass by its number of nodes is
measured when the models are opened (``engine.sizes.verify_cost``). The cost of drafting is measured in earlier steps.
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
"""Number of nodes -> cost of a pass, used if nothing was measured. The unit is the time of a pass over the root
alone."""
DRAFTING = 0.4
"""The first guess at the time of drafting. The unit is the time of a pass over the root alone."""
LEARNED = 0.2
"""The weight of the latest step in the running mean of drafting times."""


class StepCosts:
    """The costs of steps by the size of their trees. measured: number of nodes -> milliseconds of a pass; if empty,
    ``USUAL`` is used."""

    def __init__(self, measured: Mapping[int, float]) -> None:
        costs = sorted((measured or USUAL).items())
        self._sizes = [size for size, _ in costs]
        # a larger pass that seems to cost less is noise
        self._costs = list(accumulate((cost for _, cost in costs), max))
        self._drafting = DRAFTING * self._costs[0]
        self._learns = bool(measured)

    @classmethod
    def of(cls, settings: Mapping[str, object], models) -> StepCosts | None:
        """The costs for a drafter with these settings; None if the option ``cost_aware`` is off."""
        return cls(models.costs) if settings.get(COST_AWARE.name) else None

    def at(self, nodes: int) -> float:
        """The cost of a step, drafting included, whose tree has this many nodes. Other sizes than the measured ones are
        interpolated or extrapolated linearly."""
        place = min(max(bisect(self._sizes, nodes), 1), len(self._sizes) - 1)
        low, high = self._sizes[place - 1 : place + 1]
        less, more = self._costs[place - 1 : place + 1]
        return self._drafting + less + (more - less) * (nodes - low) / (high - low)

    def pays(self, tokens: float, nodes: int, chance: float) -> bool:
        """Whether a tree should get one more node. tokens, nodes: what the tree has so far, in expected tokens and in
        nodes. chance: that the new node is accepted. The first node always pays, because without it there is no
        draft."""
        rate = tokens / self.at(nodes)
        return not nodes or chance >= rate * (self.at(nodes + 1) - self.at(nodes))

    def best(self, chances: Sequence[float]) -> int:
        """How many nodes a tree should have, so that it brings the most tokens for its cost. chances: the chance that
        each node is accepted, in descending order."""
        rates = self.rates(chances)[1:]
        return max(range(len(rates)), key=rates.__getitem__) + 1 if rates else 0

    def rates(self, chances: Sequence[float]) -> list[float]:
        """Expected tokens per unit of cost, for trees of 0, 1, ... ``len(chances)`` nodes."""
        tokens = accumulate(chances, initial=1.0)
        return [total / self.at(nodes) for nodes, total in enumerate(tokens)]

    def see(self, kept: Kept) -> None:
        """Update the running mean of drafting times with this step's."""
        spent = kept.milliseconds.get("draft")
        if self._learns and spent is not None:
            self._drafting += LEARNED * (spent - self._drafting)

    def shown(self, chances: Sequence[float], kept: int) -> Curve:
        """The curve of ``rates`` for the page. chances: of all nodes, the kept ones first. kept: how many nodes were
        kept."""
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
