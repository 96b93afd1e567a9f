"""A drafter among which the method chooses. It is begun when first chosen, and catches up with the text when chosen
again."""

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

PROMISING = 0.5  # tokens that copies must be expected to keep
MOST_REST = 3  # steps without a look for copies, after looks that found nothing
CAUTION = 0.95  # share of a measured chance: gains are means over texts of many kinds
LONGEST_IDLE = 1024  # tokens after which a drafter that is not chosen is given up, with the features kept for it


class Player:
    """source: the drafter as the bandit sees it. begun: whether it has been chosen in this text."""

    def __init__(
        self,
        cls: type[Drafter],
        models: Models,
        most: int,
        gains: Mapping[int, float],
        costs: dict[int, Cost],
        a_pass: Callable[[int], float],
    ) -> None:
        """most: tokens to draft. gains: measured tokens of a step by size, on texts of many kinds. costs: of earlier texts,
        which this one adds to. a_pass: cost of a pass over so many tokens and their root, in passes over one row."""
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
        """A text begins. read: the layers whose features come, for all drafters."""
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
        """The features that it has not read, of its own layers."""
        if not self._waiting:
            return None
        found = of_layers(torch.cat(self._waiting), self._read, self.layers)
        self._waiting = []
        return found

    def room(self, context: Sequence[int]) -> float:
        """The most tokens that it can draft below this text."""
        given_up = self._idle > LONGEST_IDLE and bool(self.layers)
        return 0 if given_up else self.drafter.max_context - len(context) - 1

    def look(self, context: Sequence[int], max_depth: int, plain: float) -> None:
        """Look for copies, and offer those that were seen. plain: milliseconds of a step without a draft."""
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
        """A draft of so many tokens."""
        if self.copies:
            return drafted(self._branches.first(size))
        if not self.begun:
            self._begin()
        elif self._waiting:
            self.drafter.observe(Kept(DraftTree(), [], [], None, self._features()))
        self.drafter.settings[self._size_option] = size
        return self.drafter.propose(context, max_depth)

    def passed(self, kept: Kept, chosen: bool) -> None:
        """Take note of a step."""
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
    """The chance with which each drafted token is kept, if a step of the size nearest to four gains so many tokens."""
    size = min(gains, key=lambda size: abs(size - 4))
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        gained = sum(middle**depth for depth in range(size + 1))
        low, high = (middle, high) if gained < gains[size] else (low, middle)
    return low
