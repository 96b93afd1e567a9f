"""A chain from a draft model, whose length at every step is the one with the greatest expected goodput.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024), SmartSpec. Goodput
is the expected number of tokens per unit of time. Where several texts share passes of the target, each text chooses its
own length, under the assumption that the other texts draft the length that is best for all. It chooses the length with
the most expected tokens per unit of its share of the time. So a text whose drafts are often accepted drafts longer than
the others do. The length is fixed before the first token is drawn and never depends on the drafted tokens, so the
drafter stays exact.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Exhibit, Gauge, Later, Series
from engine.core.load import Acceptance
from engine.core.options import number, whole
from engine.core.tree import DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter
from engine.methods.smartspec.goodput import (
    Round,
    best_length,
    expected_tokens,
    goodputs,
    goodputs_alike,
    worth_a_try,
)
from engine.methods.smartspec.round_costs import Costs, FixedCosts, MeasuredCosts, Retries
from engine.model.language_model import LanguageModel

FIRST = 3  # tokens drafted while it is unknown whether they will be kept
LONG = 7  # tokens that texts with shared passes draft to measure the cost of drafts
ALONE, SHARED = (FIRST,) * 3, (LONG, LONG, LONG, 0, 0)
"""The draft length in each of the first steps, while the costs are not measured yet. ALONE: for a text that is alone.
SHARED: for a text that shares passes of the target."""
UNTIMED = 2  # the times of this many first steps do not count: a pass of a new shape takes longer
_COSTS: WeakKeyDictionary[LanguageModel, MeasuredCosts] = WeakKeyDictionary()
"""For each draft model, the costs measured by all texts that share passes. They contain times only, and nothing of the
texts. A text that is alone measures costs of its own, so that a slow start of another run does not affect it."""
LOADS = (1, 4, 16)  # numbers of texts in the curve that shows where drafting stops paying


class SmartSpecDrafter(DraftModelDrafter):
    key = "smartspec"
    title = "SmartSpec"
    family, shape = "chain", "chain"
    summary = "Chooses at every step how many tokens to draft, or none, by their cost and by how many are kept."
    options = (
        whole("length", 8, 1, 32).meaning("Most tokens drafted in a step."),
        whole("load", 0, 0, 64, "Texts in a pass").meaning(
            "Choose as if this many texts like this one shared each pass of the target (0: as many as there are)."
        ),
        number("row_cost", 0.0, 0.0, 2.0, "Cost of a drafted token", advanced=True).meaning(
            "Cost of a drafted token, in passes of the target over one token (0: as measured)."
        ),
    )
    reads_chains = True
    trial = {"length": 3, "row_cost": 0.2}

    def begin(self, start):
        super().begin(start)
        price, assumed_texts = self.settings["row_cost"], self.settings["load"]
        own = MeasuredCosts()
        measured = _COSTS.setdefault(self.draft, own) if start.load.shared else own
        self._costs = FixedCosts(price) if price else measured
        shared = assumed_texts > 1 or start.load.shared
        self._opening = () if self._costs.known else SHARED if shared else ALONE
        self._doubtful = not price and not start.load.shared
        self._acceptance = Acceptance.as_of(start.load.chances)
        self._coming = Round.after(start.load, assumed_texts, self.settings["length"])
        self._steps, self._cheap = 0, True
        self._retries = Retries()
        self._joint_retries = self._costs.retries if start.load.shared else Retries()

    def propose(self, context, max_depth):
        most = min(self.settings["length"], max_depth)
        length = self._length(most)
        tree = self._chain(context, length) if length else DraftTree()
        tree.exhibits += self._exhibits(most, length)
        return tree

    def _length(self, most: int) -> int:
        if self._steps < len(self._opening):
            return min(self._opening[self._steps], most)
        chance = self._acceptance.chance
        best = best_length(goodputs(chance, most, self._costs, self._coming))
        if best:
            return best
        if self._retries.due and self._cheap:
            # all measured times of a single text may have been slow ones; many texts correct each other
            if self._doubtful or best_length(goodputs(1.0, most, self._costs, self._coming)):
                return min(1, most)
            self._retries.put_off()  # one text's drafts would not pay even if all were kept
        if self._joint_retries.due:
            if worth_a_try(most, self._costs, self._coming):
                return min(FIRST, most)
            self._joint_retries.put_off()
        return 0

    def observe(self, kept: Kept):
        length, accepted = len(kept.tree), len(kept.path)
        if length:
            super().observe(kept)
        self._acceptance.see(accepted, min(accepted + 1, length))
        self._retries.passed(bool(length))
        if self._steps >= UNTIMED or (self._steps and (kept.load.shared or not self._opening)):
            self._costs.see(kept.milliseconds, length, kept.load)
        self._coming = Round.after(kept.load, self.settings["load"], self.settings["length"])
        # a draft of this text alone would make the pass longer for all
        self._cheap = kept.load.drafted or not kept.load.shared
        self._steps += 1

    def _exhibits(self, most: int, length: int) -> list[Exhibit | Later]:
        if self._steps < len(self._opening):
            return []
        now = Moment(most, length, self._acceptance.chance, self._costs.snapshot(), self._coming)
        return [Later(now.by_length), Later(now.by_load), Later(now.acceptance)]


@dataclass(frozen=True)
class Moment:
    """The numbers from which the length of one draft was chosen, for the exhibits."""

    most: int
    chosen: int
    chance: float
    costs: Costs
    coming: Round

    def by_length(self) -> Curve:
        curve = goodputs(self.chance, self.most, self.costs, self.coming)
        gain = curve[self.chosen] / curve[0]
        return Curve(
            "Expected goodput by draft length",
            range(self.most + 1),
            [Series("this text", curve)],
            x_label="tokens drafted",
            y_label=f"tokens in {self.costs.unit}",
            mark=self.chosen,
            note=f"Chosen: length {self.chosen}, with {gain:.2f} times the goodput of no draft."
            if self.chosen
            else "Chosen: no draft. No length is expected to pay.",
        )

    def by_load(self) -> Curve:
        """Return a curve of the expected goodput by load: by the number of texts in each pass, if all are like this
        text."""
        tokens = expected_tokens(self.chance, self.most)
        own = self.coming.context / self.coming.texts
        curves = [goodputs_alike(tokens, self.costs, Round(n, n * own)) for n in LOADS]
        lengths = [best_length(curve) for curve in curves]
        crossing = next((n for n, length in zip(LOADS, lengths, strict=True) if not length), None)
        return Curve(
            "Expected goodput by load",
            LOADS,
            [
                Series("with the best length", [max(curve) for curve in curves]),
                Series("without drafts", [curve[0] for curve in curves]),
            ],
            x_label="texts in a pass",
            y_label=f"tokens in {self.costs.unit}",
            mark=crossing,
            note=f"The first load of texts like this one at which drafting does not pay: {crossing}."
            if crossing
            else f"Drafting still pays at a load of {LOADS[-1]} texts like this one.",
        )

    def acceptance(self) -> Gauge:
        note = "Share of this text's judged tokens that were kept; older steps count less."
        return Gauge("Drafted tokens kept", self.chance, note=note)
