"""Stops a draft tree from growing where one more node is expected to bring less than it costs.

SMART (Wang and Zhou, "SMART: When is it Actually Worth Expanding a Speculative Tree?", 2026): a node is worth checking
if its expected tokens per millisecond of its own cost are more than those of the whole tree. The chance that a node is
accepted is estimated by q, and q also gives the order of the nodes. The cost of a verify pass, by the number of nodes,
is measured when the models are opened (``engine.sizes.verify_cost``). The cost of drafting is measured in earlier
steps.
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
"""Number of nodes -> cost of a verify pass with these nodes, used if nothing was measured. The unit is the time of a
pass over the root alone."""
DRAFTING = 0.4
"""The assumed time of drafting before the first step. The unit is the time of a target pass over the root alone."""
LEARNED = 0.2
"""The weight of the latest step in the running mean of drafting times."""


class StepCosts:
    """The cost of a step, by the number of nodes in its tree. measured: number of nodes -> milliseconds of a verify
    pass; if it is empty, ``USUAL`` is used."""

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
        """Return the cost of a step whose tree has ``nodes`` nodes, drafting included. For a number of nodes that was
        not measured, the cost is interpolated or extrapolated linearly."""
        place = min(max(bisect(self._sizes, nodes), 1), len(self._sizes) - 1)
        low, high = self._sizes[place - 1 : place + 1]
        less, more = self._costs[place - 1 : place + 1]
        return self._drafting + less + (more - less) * (nodes - low) / (high - low)

    def pays(self, tokens: float, nodes: int, chance: float) -> bool:
        """Return whether a tree should get one more node. tokens: the expected tokens of a step with the present tree.
        nodes: the present number of nodes. chance: the chance that the new node is accepted. The answer for the first
        node is always yes, because without it there would be no draft."""
        rate = tokens / self.at(nodes)
        return not nodes or chance >= rate * (self.at(nodes + 1) - self.at(nodes))

    def best(self, chances: Sequence[float]) -> int:
        """Return the number of nodes at which a tree has the most expected tokens per unit of cost. chances: the chance
        of each node to be accepted, in descending order."""
        rates = self.rates(chances)[1:]
        return max(range(len(rates)), key=rates.__getitem__) + 1 if rates else 0

    def rates(self, chances: Sequence[float]) -> list[float]:
        """Return the expected tokens per unit of cost, for trees of the first 0, 1, ... ``len(chances)`` nodes."""
        tokens = accumulate(chances, initial=1.0)
        return [total / self.at(nodes) for nodes, total in enumerate(tokens)]

    def see(self, kept: Kept) -> None:
        """Update the running mean of drafting times with this step's."""
        spent = kept.milliseconds.get("draft")
        if self._learns and spent is not None:
            self._drafting += LEARNED * (spent - self._drafting)

    def shown(self, chances: Sequence[float], kept: int) -> Curve:
        """The curve of ``rates``, for the page. chances: the chance of each node to be accepted, first of the nodes in
        the tree, then of the nodes left out. kept: the number of nodes in the tree."""
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
