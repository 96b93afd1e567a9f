"""Goodput: the expected tokens of a step, divided by the predicted time of the step.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024). The expected tokens
follow from a moving average of the share of a text's drafted tokens that are accepted; the predicted time comes from
``engine.methods.smartspec.round_costs``. The paper maximises the goodput of all texts of a step together. Here each
text maximises its own tokens, divided by its own share of the time. Otherwise a text whose drafts are often rejected
would occupy its position in the pass for longer, while other texts wait for this position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import truediv

from engine.core.load import Load, RowsOf
from engine.methods.smartspec.round_costs import Costs

STAY = 0.06
"""A change of the number of rows in a pass must save at least this share of the time, because a change has a cost: a
draft model that paused must first be run over the text written since."""
HOPE = 0.5  # ``worth_a_try`` leaves out this share of the expected refusals


def expected_tokens(chance: float, most: int) -> list[float]:
    """Return the expected number of tokens of a step, for draft lengths 0 to ``most``. The token that the target adds
    after the accepted tokens is included. chance: the chance that a drafted token is accepted, given that all tokens
    before it are."""
    return list(accumulate(chance**depth for depth in range(most + 1)))


@dataclass(frozen=True)
class Round:
    """The coming round: one pass of the target, with the drafts before it. texts: the number of texts that share the
    pass. context: the sum of their lengths in tokens. chances: for each text, the chance that a drafted token is
    accepted; empty if all texts are assumed to be like this one. rows_of, rows: the fields of the same names in
    ``Load``. longest: the most tokens that another text may draft."""

    texts: int = 1
    context: float = 0.0
    chances: tuple[float, ...] = ()
    rows_of: RowsOf = sum
    rows: int = 0
    longest: int = 0

    @classmethod
    def after(cls, load: Load, asked: int, longest: int = 0) -> Round:
        """Return the round that follows a pass with this load. asked: the number of texts to assume, all like this
        text; 0: take the actual texts. longest: the most tokens that another text may draft."""
        if asked:
            return cls(asked, load.context / load.texts * asked)
        others = load.chances if load.texts > 1 else ()
        return cls(load.texts, load.context, others, load.rows_of, load.rows, longest)

    def milliseconds(self, costs: Costs, length: int) -> float:
        """Return the predicted time of the round if every text drafts ``length`` tokens. The unit is that of
        ``costs``."""
        rows = self.rows_of([1 + length] * self.texts)
        return self.texts * (costs.draft(length) + costs.rest) + costs.verify(rows, self.context)


def goodputs_alike(tokens: Sequence[float], costs: Costs, coming: Round) -> list[float]:
    """Return, for each length, the goodput if all texts draft this length: the expected tokens of all texts in the
    round, divided by the round's predicted time. tokens: for each length, the expected tokens of one text."""
    return [
        coming.texts * expected / coming.milliseconds(costs, length)
        for length, expected in enumerate(tokens)
    ]


def goodputs(chance: float, most: int, costs: Costs, coming: Round) -> list[float]:
    """Return this text's goodput for draft lengths 0 to ``most``: its expected tokens in the coming round, divided by
    its time. Its time has two parts. The first is an equal share of a round in which all texts draft the length that is
    best for all. The second is the change that the text's own length makes to this round.

    Every text computes about the same best length for all, and so all texts change their lengths together. This matters
    where a pass is padded to its longest draft, because one text alone could not make such a pass shorter. A text pays
    for its position in the pass, because another text waits for this position.
    """
    own = expected_tokens(chance, most)
    if coming.chances:
        longest = max(most, coming.longest)
        times = _known_times(coming, longest, costs, costs.version)[: most + 1]
    else:
        common = best_length(goodputs_alike(own, costs, coming))
        times = _times(common, most + 1, costs, coming)
    return [tokens / time for tokens, time in zip(own, times, strict=True)]


def worth_a_try(most: int, costs: Costs, coming: Round) -> bool:
    """Return whether it would pay that all texts of the round draft, if fewer drafted tokens were rejected than
    expected: less by the share HOPE."""
    return bool(coming.chances) and _known_hope(coming, most, costs, costs.version)


@lru_cache(maxsize=8)
def _known_hope(coming: Round, most: int, costs: Costs, version: int) -> bool:
    """Compute ``worth_a_try`` for a round with several texts. The result is the same for all of them, so it is cached.
    version: ``costs.version``, which makes cached results of older costs unused."""
    hopes = (1 - HOPE * (1 - chance) for chance in coming.chances)
    return _common_length([expected_tokens(hope, most) for hope in hopes], costs, coming) > 0


def _common_length(tokens: Sequence[Sequence[float]], costs: Costs, coming: Round) -> int:
    """Return the length that is best for all texts. For each length it is assumed that most texts draft this length,
    while each text chooses the best length for itself. The length with the least time per token, averaged over the
    texts, is best. tokens: the expected tokens, by text and length."""
    count = len(tokens[0])
    # where passes are padded, many lengths make passes of one size; the longest of these lengths stands for all
    by_rows = {coming.rows_of([1 + length] * coming.texts): length for length in range(count)}

    def time(rows: int) -> float:
        times = _times(by_rows[rows], count, costs, coming)
        return (1 - STAY * (rows == coming.rows)) * sum(
            min(map(truediv, times, own)) for own in tokens
        )

    return by_rows[min(by_rows, key=time)]


def _times(common: int, count: int, costs: Costs, coming: Round) -> list[float]:
    """Return a text's time for each of its draft lengths from 0 to ``count`` - 1. The time is the sum of three parts:
    the time in which the text drafts, an equal share of a round in which all texts draft ``common`` tokens, and the
    change that the text's own length makes to the pass."""
    other_rows = [1 + common] * (coming.texts - 1)
    rows = [coming.rows_of([1 + length, *other_rows]) for length in range(count)]
    passes = [costs.verify(count_of_rows, coming.context) for count_of_rows in rows]
    shared = passes[common] / coming.texts - passes[common] + costs.rest
    return [costs.draft(length) + shared + own for length, own in enumerate(passes)]


@lru_cache(maxsize=8)
def _known_times(coming: Round, most: int, costs: Costs, version: int) -> list[float]:
    """Return a text's times for the draft lengths 0 to ``most``. They are the same for all texts of a pass, so they are
    cached. version: ``costs.version``, which makes cached results of older costs unused."""
    tokens = [expected_tokens(chance, most) for chance in coming.chances]
    return _times(_common_length(tokens, costs, coming), most + 1, costs, coming)


def best_length(curve: Sequence[float]) -> int:
    """Return the draft length with the greatest goodput; in a tie, the shortest. curve: the goodput for each length
    from 0."""
    return max(range(len(curve)), key=curve.__getitem__)
