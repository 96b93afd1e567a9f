"""Lets an EAGLE cell read several levels of a chain in one call, before the drafter requests them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.seen import ReadChain
from engine.methods.shared.eagle_context import EagleContext
from engine.methods.shared.read_ahead import ReadAhead

Embed = Callable[[Sequence[int]], Tensor]
"""R tokens -> their embeddings [R, H]."""


@dataclass(frozen=True)
class Level:
    """R rows that the cell has read. states: [R, H], the state at each row's token. q: [R, V], the law after it, on the
    host."""

    states: Tensor
    q: Tensor


class LevelsAhead:
    """Reads levels ahead while the draft is a greedy chain: each level has one row, the likeliest token after the row
    above. Other levels are left to the caller, which reads them one by one.

    law: logits [R, v] in the cell's own vocabulary -> q [R, V]. read: how many levels the last call of ``begin`` or
    ``take`` read.
    """

    def __init__(self, context: EagleContext, law: Callable[[Tensor], Tensor]) -> None:
        self._context, self._law, self._policy = context, law, ReadAhead(context.blocks)
        self._coming: list[
            tuple[int, Level]
        ] = []  # (token, level) for levels that were read but not yet taken
        self._asked = self._expected = self.read = 0
        self._is_chain = False

    def begin(self, states: Tensor, embedded: Tensor, expected: int) -> Level | None:
        """Read and commit pairs of states and embeddings [R, H], and read levels ahead after them. Returns the level of
        the last pair; None if reading ahead does not pay, and then nothing was read.

        expected: the most levels that the caller will request in this step, including this one, if each has one row."""
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
        """The level of these tokens at this depth, if it was read ahead, or if it pays to read it now together with
        later levels. Returns None otherwise; then the caller must read it. states: the states [R, H] at the tokens'
        parents."""
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
