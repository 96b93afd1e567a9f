"""Grows a draft tree at the positions where acceptance is most likely.

DySpec (Xiong et al., 2024). A slot is an empty position in the tree: that of a node's next child. The value of a slot
is the chance that verification reaches it: the estimated probability of the path to the node, times the probability
that all earlier children of the node are rejected. The slot with the highest value is chosen first, and only then its
token is drawn. So no drawn token is ever dropped.
"""

import heapq
from dataclasses import dataclass

from torch import Tensor

from engine.core.drafter import tree_size
from engine.core.exhibits import Curve
from engine.core.options import number, whole
from engine.core.sampling import likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.cost_aware import COST_AWARE, StepCosts
from engine.methods.shared.draft_model import DraftModelDrafter, stop_option

WORTH_READING_WITH = 0.3
"""A slot whose value is below this share of the best slot's value is not filled in the same pass, because the pass may
open slots of higher value."""

WORTH_CHECKING = 0.1
"""The lowest value of a slot that is still filled after the draft model's last pass, because the target needs time to
check a token."""


class Place:
    """The possible children of a node. q: the distribution [V] from which the children are drawn, or which is shown for
    them in greedy decoding. _left: the weights of all tokens that are not children yet, without renormalisation."""

    def __init__(self, drafter: "GrownTree", q: Tensor) -> None:
        self.q = q
        self._drafter, self._left = drafter, drafter.ranked(q)

    def take(self) -> tuple[int, float] | None:
        """Choose the next child among the tokens that are not children of this node yet. Returns its token, and the
        weight of this token divided by the weight of all these tokens; None if they have no weight."""
        mass = float(self._left.sum())
        if mass <= 0:
            return None
        token = self._drafter.pick(self._left)
        share = float(self._left[token]) / mass
        self._left[token] = 0
        return token, share

    def most(self) -> float:
        """Among the tokens that are not children of this node yet, return the largest weight of a token, divided by the
        weight of all these tokens."""
        mass = float(self._left.sum())
        return float(self._left.max()) / mass if mass > 0 else 0.0


class GrownTree(DraftModelDrafter):
    key = "dyspec"
    family = "tree"
    draw_kinds = ("without_replacement",)
    options = (
        tree_size(256),
        whole("depth", 12, 1, 32).meaning("Longest branch."),
        whole("width", 4, 1, 64, "Read at once", advanced=True).meaning(
            "Nodes the draft model reads in one pass (1: DySpec)."
        ),
        number("sharpness", 2.0, 1.0, 8.0, advanced=True, only="greedy").meaning(
            "Open places are ranked by q to this power (1: DySpec), because a greedy target takes its "
            "favourite more often than q says."
        ),
        stop_option(
            0.6,
            "No further pass of the draft model when the nodes it would read are reached with less "
            "chance than this, all together",
        ),
        COST_AWARE,
    )

    reads_chains = True
    size_option, usual_size = "budget", 12
    trial = {"budget": 3, "depth": 2, "width": 2}
    costs: StepCosts | None = None
    """The costs that decide when the tree stops growing; None: the tree grows to the size that the options give."""

    @classmethod
    def build(cls, settings, models):
        drafter = super().build(settings, models)
        drafter.costs = StepCosts.of(settings, models)
        return drafter

    def observe(self, kept):
        super().observe(kept)
        if self.costs is not None:
            self.costs.see(kept)

    def propose(self, context, max_depth):
        growth = _Growth(self, self.settings["budget"], min(self.settings["depth"], max_depth))
        expected = min(growth.max_depth, growth.room) if self.sampling.greedy else 1
        growth.open(ROOT, Place(self, self._reader.read(context, expected)), 1.0, depth=0)
        while growth.room and growth.slots:
            fresh = growth.fill(min(self.settings["width"], growth.room))
            readable = [leaf for leaf in fresh if leaf.depth < growth.max_depth]
            if sum(leaf.value for leaf in readable) < self.stop_below:
                growth.fill_rest()
                break
            if readable and growth.room:
                self._read(growth, readable)
        if self.costs is not None:
            growth.tree.exhibits.append(growth.shown_costs())
        return growth.tree

    def _read(self, growth: "_Growth", leaves: list["_Leaf"]) -> None:
        nodes = [leaf.node for leaf in leaves]
        tree = growth.tree
        rows = self._reader.expand(
            nodes, [tree.tokens[n] for n in nodes], [tree.parents[n] for n in nodes]
        )
        for leaf, q in zip(leaves, rows, strict=True):
            growth.open(leaf.node, Place(self, q), leaf.value, leaf.depth)

    def ranked(self, q: Tensor) -> Tensor:
        """Return the weights [V] from which the values of slots follow: q itself if tokens are drawn, and a power of q
        in greedy decoding."""
        return q ** self.settings["sharpness"] if self.sampling.greedy else q.clone()

    def pick(self, left: Tensor) -> int:
        """Return the token of a node's next child, given the remaining weights [V]. The token is drawn in proportion to
        the weights; in greedy decoding it is the token of largest weight."""
        if self.sampling.greedy:
            return likeliest(left)
        return self.chance.draw(left)


@dataclass(frozen=True)
class _Leaf:
    node: int
    value: float
    depth: int


class _Growth:
    """A tree under construction: its nodes, and a heap of its slots, in which the slot of the highest value comes
    first."""

    def __init__(self, drafter: GrownTree, budget: int, max_depth: int) -> None:
        self.tree = DraftTree()
        self.max_depth = max_depth
        self._budget = budget
        self.slots: list[tuple[float, int, int]] = []  # (-value, order, parent)
        self._places: dict[int, tuple[Place, int]] = {}
        self._kind = "one_hot" if drafter.sampling.greedy else "without_replacement"
        self._costs = drafter.costs
        self._chances: list[float] = []  # the chance that each node is accepted
        self._left_out: list[
            float
        ] = []  # the chances of slots that were skipped because they do not pay
        self._order = 0

    @property
    def room(self) -> int:
        return self._budget - len(self.tree)

    def open(self, node: int, place: Place, value: float, depth: int) -> None:
        """Open the first slot below ``node``. value: the value of this slot. depth: the depth of ``node``."""
        self._places[node] = place, depth
        self._push(value, node)

    def _push(self, value: float, parent: int) -> None:
        heapq.heappush(self.slots, (-value, self._order, parent))
        self._order += 1

    def fill(self, most: int) -> list[_Leaf]:
        """Fill the best slots, at most ``most``; returns the new leaves. When a slot is filled, the slot of its next
        sibling is opened."""
        fresh = []
        least = -self.slots[0][0] * WORTH_READING_WITH
        while self.slots and len(fresh) < most and -self.slots[0][0] >= least:
            negative, _, parent = heapq.heappop(self.slots)
            if self._costs is not None and not self._pays(-negative, parent):
                continue
            leaf = self._fill_one(-negative, parent)
            if leaf is not None:
                fresh.append(leaf)
        return fresh

    def _pays(self, value: float, parent: int) -> bool:
        """Return whether filling the slot below ``parent`` is worth its cost. This must be decided before the token of
        the slot is drawn, so that no drawn token is dropped."""
        chance = value * self._places[parent][0].most()
        pays = self._costs.pays(1.0 + sum(self._chances), len(self.tree), chance)
        if not pays:
            self._left_out.append(chance)
        return pays

    def shown_costs(self) -> Curve:
        return self._costs.shown(self._chances + sorted(self._left_out)[:-5:-1], len(self.tree))

    def fill_rest(self) -> None:
        """Fill all slots of value ``WORTH_CHECKING`` or more. This is done after the draft model's last pass."""
        while self.room and self.slots and -self.slots[0][0] >= WORTH_CHECKING:
            self.fill(1)

    def _fill_one(self, value: float, parent: int) -> _Leaf | None:
        place, depth = self._places[parent]
        child = place.take()
        if child is None:
            return None
        token, share = child
        node = self.tree.draw(parent, token, self._kind, place.q, "draft model")
        self._push(value * (1 - share), parent)
        self._chances.append(value * share)
        return _Leaf(node, value * share, depth + 1)
