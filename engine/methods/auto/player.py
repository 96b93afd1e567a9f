"""A drafter that the method ``auto`` may choose. The drafter begins when it is first chosen in a text. When it is
chosen again, it first reads the text that it has missed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.core.drafter import Drafter, Kept, Start
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.target import Models, of_layers
from engine.core.tree import DraftTree
from engine.methods.auto.bandit import Cost, Source
from engine.methods.shared.suffix_copies import Branches, SuffixCopies, drafted

PROMISING = 0.5  # copies are offered if at least this many of their tokens are expected to be kept
MOST_REST = 3  # most steps without a look for copies, after looks that found nothing
CAUTION = 0.95  # a measured chance is multiplied by this: gains are means over texts of many kinds
LONGEST_IDLE = 1024  # a drafter that was not chosen for this many tokens is given up, and its features are dropped


class Player:
    """A drafter that may be chosen. source: this drafter as the bandit sees it. begun: whether it has been chosen in
    this text."""

    def __init__(
        self,
        cls: type[Drafter],
        models: Models,
        most: int,
        gains: Mapping[int, float],
        costs: dict[int, Cost],
        a_pass: Callable[[int], float],
    ) -> None:
        """most: the most tokens to draft. gains: the mean number of tokens per step, by draft size, as measured on
        texts of many kinds. costs: measured costs of steps in earlier texts, by size; this text adds to them. a_pass:
        the cost of a pass over a draft of this size and its root, in passes over one row."""
        arm = cls.arm
        sizes = tuple(size for size in arm.sizes if size <= most) or (most,)
        chance = CAUTION * chance_of(gains) if gains else arm.chance
        self._arm, self._costs = replace(arm, sizes=sizes, chance=chance), costs
        self._a_pass = a_pass
        self._size_option = cls.size_option
        options = {self._size_option: sizes[-1]}
        self.drafter = cls.build(resolve(cls.key, cls.options, options), models)
        self.layers = tuple(self.drafter.feature_layers)
        self.copies = isinstance(self.drafter, SuffixCopies)
        self.begun = False

    def wait(self, start: Start, read: Sequence[int]) -> None:
        """Prepare for a new text. read: the layers of the target whose features are requested for all drafters
        together."""
        self.source = Source(self.drafter.title, self._arm, self._costs, self.copies, self._a_pass)
        self._start, self._read = replace(start, sampling=Sampling(), features=None), read
        self._waiting = [start.features] if self.layers and start.features is not None else []
        self._idle, self.begun = 0, False
        self._branches: Branches | None = None
        self._blind, self._rest = 0, 0
        self.source.behind = 0 if self.copies else len(start.prompt)
        if self.copies:
            self._begin()

    def _begin(self) -> None:
        self.drafter.begin(replace(self._start, features=self._features()))
        self.begun = True

    def _features(self) -> Tensor | None:
        """Return the features that this drafter has not read yet, only those of the layers that it uses; None if there
        are none."""
        if not self._waiting:
            return None
        features = of_layers(torch.cat(self._waiting), self._read, self.layers)
        self._waiting = []
        return features

    def room(self, context: Sequence[int]) -> float:
        """Return the most tokens that the drafter can draft after this text; 0 if the drafter was given up."""
        given_up = self._idle > LONGEST_IDLE and bool(self.layers)
        return 0 if given_up else self.drafter.max_context - len(context) - 1

    def look(self, context: Sequence[int], max_depth: int, plain: float) -> None:
        """Look for copies in the text, and offer them if enough of their tokens are expected to be kept. plain:
        milliseconds of a step without a draft."""
        self.source.offers = []
        if self._rest:
            self._rest -= 1
            return
        self._branches = self.drafter.best(context, max_depth)
        if self._branches is not None and self._branches.score >= PROMISING:
            self._blind = 0
            self.source.offer(plain, self._branches.chances)
        else:
            self._blind = min(self._blind + 1, MOST_REST)
            self._rest = self._blind

    def draft(self, context: Sequence[int], max_depth: int, size: int) -> DraftTree:
        """Return a draft of ``size`` tokens, no deeper than ``max_depth``."""
        if self.copies:
            return drafted(self._branches.first(size))
        if not self.begun:
            self._begin()
        elif self._waiting:
            self.drafter.observe(Kept(DraftTree(), [], [], None, self._features()))
        self.drafter.settings[self._size_option] = size
        return self.drafter.propose(context, max_depth)

    def passed(self, kept: Kept, chosen: bool) -> None:
        """Record a step of the text. chosen: whether this drafter proposed the step's draft."""
        if self.copies:
            self.drafter.observe(kept)
        elif chosen:
            if kept.features is not None:
                kept = replace(kept, features=of_layers(kept.features, self._read, self.layers))
            self.drafter.observe(kept)
            self._idle, self.source.behind = 0, len(kept.tokens)
        else:
            self._idle += len(kept.tokens)
            self.source.behind += len(kept.tokens)
            if self._idle > LONGEST_IDLE:
                self._waiting = []
            elif self.layers and kept.features is not None:
                self._waiting.append(kept.features)


def chance_of(gains: Mapping[int, float]) -> float:
    """Return the chance of keeping a drafted token that explains the measured gains. If each token is kept with this
    chance, a step of the measured size nearest to 4 has on average as many tokens as were measured."""
    size = min(gains, key=lambda size: abs(size - 4))
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        gained = sum(middle**depth for depth in range(size + 1))
        low, high = (middle, high) if gained < gains[size] else (low, middle)
    return low
