"""A chain from a draft model, at every step of the length with the greatest expected goodput.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024), SmartSpec.
Where texts share passes of the target, each text chooses its own length and assumes that the others do as in the
previous round; so a text whose drafts are kept goes on drafting where others have stopped. The length is fixed
before the first token is drawn and never depends on the drafted tokens, so the drafter stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.drafters.base import Kept
from engine.drafters.draft_model import DraftModelDrafter
from engine.exhibits import Curve, Exhibit, Gauge, Later, Series
from engine.options import Option
from engine.policies.goodput import (
    Acceptance,
    Costs,
    FixedCosts,
    MeasuredCosts,
    Round,
    best_length,
    expected_tokens,
    goodputs,
)
from engine.tree import DraftTree

UNTIMED = 2  # first steps of a text: a pass of a new shape takes longer
FIRST = 4  # tokens drafted before anything was timed
PATIENCE, MOST_PATIENCE = 8, 64
"""Steps without a draft after which one token is drafted, to see whether it is kept now. The number doubles, up
to MOST_PATIENCE, each time that drafting still does not pay."""
LOADS = tuple(range(1, 17))  # texts, of the curve that shows where drafting stops paying


class SmartSpecDrafter(DraftModelDrafter):
    key = "smartspec"
    title = "SmartSpec"
    family = "chain"
    summary = "Chooses at every step how many tokens to draft, or none, by their cost and by how many are kept."
    options = (
        Option("length", "int", 8, "Most tokens drafted in a step.", 1, 32),
        Option(
            "load",
            "int",
            0,
            "Choose as if this many texts like this one shared each pass of the target (0: as many as there are).",
            0,
            64,
            label="Texts in a pass",
        ),
        Option(
            "row_cost",
            "float",
            0.0,
            "Cost of a drafted token, in passes of the target over one token (0: as measured).",
            0.0,
            2.0,
            label="Cost of a drafted token",
            advanced=True,
        ),
    )
    trial = {"length": 3, "row_cost": 0.2}

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    def begin(self, start):
        super().begin(start)
        price = self.settings["row_cost"]
        self._costs = FixedCosts(price) if price else MeasuredCosts()
        self._acceptance = Acceptance()
        self._others = Round(alike=self.settings["load"] or 1)
        self._steps = 0
        self._idle, self._patience = 0, PATIENCE

    def propose(self, context, max_depth):
        most = min(self.settings["length"], max_depth)
        length = self._length(most)
        tree = self._chain(context, length) if length else DraftTree()
        tree.exhibits += self._exhibits(most, length)
        return tree

    def _length(self, most: int) -> int:
        if not self._costs.known:
            return min(FIRST, most)
        tokens = expected_tokens(self._acceptance.chance, most)
        best = best_length(goodputs(tokens, self._costs, self._others))
        if best:
            self._idle, self._patience = 0, PATIENCE
        elif self._idle < self._patience:
            self._idle += 1
        else:
            self._idle, self._patience = 0, min(2 * self._patience, MOST_PATIENCE)
            return 1
        return best

    def observe(self, kept: Kept):
        super().observe(kept)
        length, accepted = len(kept.tree), len(kept.path)
        self._acceptance.see(accepted, min(accepted + 1, length))
        if self._steps >= UNTIMED:
            self._costs.see(kept.milliseconds, length, kept.load)
        self._others = Round.after(kept.load, 1 + length, self.settings["load"])
        self._steps += 1

    def _exhibits(self, most: int, length: int) -> list[Exhibit | Later]:
        if not self._costs.known:
            return []
        now = Moment(most, length, self._acceptance.chance, self._costs.snapshot(), self._others)
        return [Later(now.by_length), Later(now.by_load), Later(now.acceptance)]


@dataclass(frozen=True)
class Moment:
    """The numbers by which a length was chosen."""

    most: int
    chosen: int
    chance: float
    costs: Costs
    others: Round

    def by_length(self) -> Curve:
        tokens = expected_tokens(self.chance, self.most)
        found = goodputs(tokens, self.costs, self.others)
        gain = found[self.chosen] / found[0]
        return Curve(
            title="Expected goodput by draft length",
            note=f"Chosen: length {self.chosen}, with {gain:.2f} times the goodput of no draft."
            if self.chosen
            else "Chosen: no draft. No length is expected to pay.",
            x=range(self.most + 1),
            series=[Series("all texts of the pass", found)],
            x_label="tokens drafted",
            y_label=f"tokens in {self.costs.unit}",
            mark=self.chosen,
        )

    def by_load(self) -> Curve:
        """The expected goodput by the number of texts like this one in each pass."""
        tokens = expected_tokens(self.chance, self.most)
        own = self.others.context / (self.others.texts + self.others.alike)
        each = [goodputs(tokens, self.costs, Round(context=n * own, alike=n)) for n in LOADS]
        lengths = [best_length(found) for found in each]
        crossing = next((n for n, length in zip(LOADS, lengths, strict=True) if not length), None)
        return Curve(
            title="Expected goodput by load",
            note=f"The first load of texts like this one at which drafting does not pay: {crossing}."
            if crossing
            else f"Drafting still pays at a load of {LOADS[-1]} texts like this one.",
            x=LOADS,
            series=[
                Series("with the best length", [max(found) for found in each]),
                Series("without drafts", [found[0] for found in each]),
            ],
            x_label="texts in a pass",
            y_label=f"tokens in {self.costs.unit}",
            mark=crossing,
        )

    def acceptance(self) -> Gauge:
        note = "Share of this text's judged tokens that were kept; older steps count less."
        return Gauge(title="Drafted tokens kept", note=note, value=self.chance)
