"""Choose at every step the drafter that pays, or none, among all drafters for which the target has the parts
(``engine.methods.auto.bandit``).

All drafters share the target's pass. A drafter that was idle first reads the text that it has missed when it is chosen
again, and the time of this reading is part of its price. All drafters draft the likeliest tokens, even if the text is
sampled, so every draft is one-hot. With the rule sampler-match, the text is then that of plain decoding with the same
seed, whichever drafter is chosen. So measured times may decide. Drafters that copy know, before anything is drafted,
how many of their tokens are expected to be kept, and this number decides as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from weakref import WeakKeyDictionary

import numpy as np

from engine.core.drafter import Drafter, Kept
from engine.core.exhibits import Exhibit, Gauge, Later, Matrix
from engine.core.load import UNKNOWN
from engine.core.options import switch, whole
from engine.core.tree import DraftTree
from engine.methods import own_drafters
from engine.methods.auto.bandit import CREDIT, Bandit, Cost, Offer, Source, guessed_pass
from engine.methods.auto.player import Player
from engine.parts.gain_table import gain_table

_COSTS: WeakKeyDictionary[object, dict[tuple, dict[int, Cost]]] = WeakKeyDictionary()
"""For each target, the measured costs of steps, by drafter and size. Only times are stored here, and nothing of the
texts."""


def armed() -> dict[str, type[Drafter]]:
    """Return the drafters that may be chosen at a step, by key: those whose own class declares ``arm``."""
    return {key: cls for key, cls in own_drafters().items() if vars(cls).get("arm") is not None}


class AutoDrafter(Drafter):
    key = "auto"
    title = "Whatever pays"
    family = "chain"
    summary = (
        "Picks at every step the drafter and the size that pay here, or none, by measured times."
    )
    draw_kinds = ("one_hot",)
    default_verifier = "sampler_match"
    learns = True
    reads_chains = True
    options = (
        whole("length", 16, 1, 32).meaning("Most tokens drafted in a step."),
        switch("measured", True, "Measured").meaning(
            "Choose by times measured while the text is written; off: by guesses, so that choices can be repeated."
        ),
    )
    trial = {"length": 4, "measured": False}

    def __init__(self, settings, players: Sequence[Player], costs: dict) -> None:
        super().__init__(settings)
        self._players, self._costs, self._coming = players, costs, UNKNOWN
        layers = {layer for player in players for layer in player.layers}
        self.feature_layers = tuple(sorted(layers))

    @classmethod
    def asks_for_costs(cls, settings):
        return bool(settings["measured"])

    @classmethod
    def may_use(cls):
        return {role: kind for arm in armed().values() for role, kind in arm.needs.items()}

    @classmethod
    def build(cls, settings, models):
        gains, players = gain_table(models).gains, []
        costs = _COSTS.setdefault(models.target, {}) if settings["measured"] else {}
        a_pass = _pass_by(models.costs) if models.costs else guessed_pass
        for key, arm in armed().items():
            if arm.needs.keys() <= models.parts.keys():
                folders = (models.folders.get(role) for role in sorted(arm.needs))
                by_size = costs.setdefault((key, *folders), {})
                gained = gains.get(key, {})
                players.append(Player(arm, models, settings["length"], gained, by_size, a_pass))
        return cls(settings, players, costs)

    def expect(self, coming):
        self._coming = coming
        for player in self._players:
            player.drafter.expect(coming)

    def begin(self, start):
        super().begin(start)
        plain = self._costs.setdefault((), {}).setdefault(0, Cost())
        plain.sights = min(plain.sights, 2)
        for player in self._players:
            player.wait(start, self.feature_layers)
        most_tokens = self._coming.length - self._coming.prompt if self._coming.length else CREDIT
        sources = [player.source for player in self._players]
        measured = plain if self.settings["measured"] else None
        self._bandit = Bandit(sources, measured, most_tokens, len(start.prompt))
        self._offer: Offer | None = None
        self._looked = 0.0

    def propose(self, context, max_depth):
        able = [player for player in self._players if player.room(context) > 0]
        self._look(able, context, max_depth)
        self._offer = self._bandit.choose(max_depth, [player.source for player in able])
        shown = self._shown(self._offer)
        if self._offer is None:
            tree = DraftTree()
        else:
            (player,) = (candidate for candidate in able if candidate.source is self._offer.source)
            tree = player.draft(context, min(max_depth, player.room(context)), self._offer.size)
        tree.exhibits[:0] = shown
        return tree

    def _look(self, able: list[Player], context: Sequence[int], max_depth: int) -> None:
        """Let the drafters that copy look for copies, and update their offers with the chances that these copies are
        kept."""
        began, self._looked = perf_counter(), 0.0
        afford = self._bandit.ready and self._bandit.affords(0.0)
        for player in able:
            if player.copies and not afford:
                player.source.offers = []
            elif player.copies:
                player.look(context, max_depth, self._bandit.pass_time)
                self._looked = (perf_counter() - began) * 1000

    def observe(self, kept: Kept):
        offer, self._offer = self._offer, None
        bandit, tokens = self._bandit, len(kept.tokens)
        if bandit.plain is None:
            times = 1.0 if offer is None else offer.cost + offer.catch_up
        else:
            times = sum(kept.milliseconds.values()) - self._looked
        if offer is not None:
            offer.source.see(
                offer, len(kept.path), min(len(kept.path) + 1, kept.tree.deepest), tokens
            )
        bandit.passed(times, tokens, offer, 0.0 if bandit.plain is None else self._looked)
        for player in self._players:
            player.passed(kept, offer is not None and player.source is offer.source)

    def passes(self):
        passes: dict[str, int] = {}
        for player in self._players:
            if player.begun:
                passes |= player.drafter.passes()
        return passes

    def close(self):
        for player in self._players:
            if player.begun:
                player.drafter.close()

    def _shown(self, chosen: Offer | None) -> list[Exhibit | Later]:
        bandit = self._bandit
        if not bandit.ready:
            return []
        # the sources replace these lists and never change them
        offers = [source.offers for source in bandit.sources]
        moment = Moment(
            bandit.sources, offers, chosen, bandit.pass_time, bandit.lost, bandit.allowed
        )
        return [Later(moment.speeds), Later(moment.budget)]


def _pass_by(costs: Mapping[int, float]) -> Callable[[int], float]:
    """Return the cost of a pass as a function of its nodes. The unit is the cost of a pass over the fewest nodes in
    ``costs``. costs: milliseconds of a pass, by number of nodes."""
    nodes = sorted(costs)
    passes = [costs[count] / costs[nodes[0]] for count in nodes]
    return lambda size: float(np.interp(size, nodes, passes))


@dataclass(slots=True)
class Moment:
    """The numbers that decided one choice, for the exhibits. offers: one list for each drafter."""

    sources: list[Source]
    offers: list[list[Offer]]
    chosen: Offer | None
    plain: float
    lost: float
    allowed: float

    def speeds(self) -> Matrix:
        sizes = sorted({offer.size for offers in self.offers for offer in offers})
        rows = []
        for offers in self.offers:
            speeds = {offer.size: round(offer.speed * self.plain, 2) for offer in offers}
            rows.append([speeds.get(size) for size in sizes])
        if self.chosen is None:
            note = "Chosen: no draft. A step without one is 1."
        else:
            choice = f"{self.chosen.source.name} with {self.chosen.size} tokens"
            note = f"Chosen: {choice}; {self.chosen.tokens:.1f} tokens are expected. A step without a draft is 1."
        return Matrix(
            "Expected speed by drafter and tokens drafted",
            [source.name for source in self.sources],
            sizes,
            rows,
            note=note,
        )

    def budget(self) -> Gauge:
        share = self.lost / self.plain
        return Gauge(
            "Time that drafts have lost",
            max(0.0, share),
            maximum=max(1.0, 2 * self.allowed / self.plain),
            mark=self.allowed / self.plain,
            unit="passes",
            note="Beside plain decoding of the same tokens. Beyond the mark nothing is drafted."
            if share >= 0
            else f"None: drafts have saved the time of {-share:.1f} passes.",
        )
