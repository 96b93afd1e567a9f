"""Lets an EAGLE cell compute several levels of a chain in one call, before the drafter requests them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.seen import ReadChain
from engine.methods.shared.eagle_context import EagleContext
from engine.methods.shared.read_ahead import ReadAhead

Embed = Callable[[Sequence[int]], Tensor]
"""A function from R tokens to their embeddings [R, H]."""


@dataclass(frozen=True)
class Level:
    """The output of the cell for R tokens. states: [R, H], the cell's state at each token. q: [R, V], the distribution
    after each token, on the host."""

    states: Tensor
    q: Tensor


class LevelsAhead:
    """Computes levels ahead while the draft is a greedy chain: a chain in which each level has one token, the likeliest
    after the token of the level above. Levels of other drafts are left to the caller, which computes them one by one.

    law: the function from logits [R, v] over the cell's own vocabulary to q [R, V]. read: the number of levels that the
    last call of ``begin`` or ``take`` computed.
    """

    def __init__(self, context: EagleContext, law: Callable[[Tensor], Tensor]) -> None:
        self._context, self._law, self._policy = context, law, ReadAhead(context.blocks)
        self._coming: list[
            tuple[int, Level]
        ] = []  # (token, level) for levels that were read but not yet taken
        self._asked = self._expected = self.read = 0
        self._is_chain = False

    def begin(self, states: Tensor, embedded: Tensor, expected: int) -> Level | None:
        """Commit pairs of states and embeddings [R, H], and compute levels after them in the same call. Returns the
        level of the last pair. If computing ahead does not pay, nothing is committed or computed, and None is returned.

        expected: the most levels that the caller will request in this step, counting the returned level, if each level
        has one row.
        """
        if self._is_chain:
            self._policy.saw(self._asked)
        self._asked, self._expected, self._is_chain = 1, expected, expected > 1
        self._coming = []
        self.read = self._policy.rows(expected, math.inf)
        if self.read == 1:
            self.read = 0
            return None
        self._keep(None, self._context.read_ahead(states, embedded, self.read))
        return self._coming.pop(0)[1]

    def take(self, states: Tensor, tokens: Sequence[int], depth: int, embed: Embed) -> Level | None:
        """Return the level of these tokens at this depth if it was computed ahead. If it was not, but it pays to
        compute it now together with later levels, compute these levels and return the first. Otherwise return None, and
        the caller must compute the level. states: [R, H], the cell's states at the parents of the tokens."""
        self.read = 0
        self._is_chain = self._is_chain and len(tokens) == 1
        if self._is_chain and not self._coming:
            self._read_on(states, tokens, depth, embed)
        self._asked += 1
        if self._is_chain and self._coming and self._coming[0][0] == tokens[0]:
            return self._coming.pop(0)[1]
        if self._coming:
            self._context.forget(depth)
            self._coming = []
        return None

    def _read_on(self, states: Tensor, tokens: Sequence[int], depth: int, embed: Embed) -> None:
        count = self._policy.rows(self._expected - self._asked, math.inf, self._asked)
        if count > 1:
            self.read = count
            chain = self._context.grow_ahead(states[0], embed(tokens), depth, count)
            self._keep(tokens[0], chain)

    def _keep(self, first: int | None, chain: ReadChain) -> None:
        """Store the rows of a chain as levels. first: the token of the first row."""
        tokens = [first, *chain.tokens[:-1]]
        levels = map(Level, chain.features.split(1), self._law(chain.logits).split(1))
        self._coming += zip(tokens, levels, strict=True)
