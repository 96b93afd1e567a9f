"""Goodput: the tokens that a step is expected to write, divided by the time that it is predicted to take.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024). The tokens follow
from a moving average of each text's share of kept drafted tokens; the time comes from
``engine.methods.smartspec.round_costs``. The paper maximises the tokens of all texts of a step. Here each text
maximises its own tokens for its share of the time. Otherwise texts whose drafts fail would keep their places in the
pass for longer, while other texts wait for these places.
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
"""Another size of the passes must be better than the present one by this share of the time, because a change has its
price: a draft model that paused must first read the text written since."""
HOPE = 0.5  # ``worth_a_try`` leaves out this share of the expected refusals


def expected_tokens(chance: float, most: int) -> list[float]:
    """Return the expected tokens of a step, the final token included, for draft lengths 0 to ``most``. chance: the
    chance that a drafted token is kept, given that the tokens before it are."""
    return list(accumulate(chance**depth for depth in range(most + 1)))


@dataclass(frozen=True)
class Round:
    """The coming round. texts: the number of texts that share its pass. context: the tokens of all of them. chances:
    for each text, the chance that a drafted token is kept; empty if all texts are like this one. rows_of, rows: as in
    ``Load``. longest: the longest draft of another text."""

    texts: int = 1
    context: float = 0.0
    chances: tuple[float, ...] = ()
    rows_of: RowsOf = sum
    rows: int = 0
    longest: int = 0

    @classmethod
    def after(cls, load: Load, asked: int, longest: int = 0) -> Round:
        """Return the round that follows a pass with this load. asked: the number of texts to assume, all like this one;
        0 means the actual texts. longest: the longest draft that another text may choose."""
        if asked:
            return cls(asked, load.context / load.texts * asked)
        others = load.chances if load.texts > 1 else ()
        return cls(load.texts, load.context, others, load.rows_of, load.rows, longest)

    def milliseconds(self, costs: Costs, length: int) -> float:
        """Return the predicted time of the round if every text drafts ``length`` tokens, in the unit of ``costs``."""
        rows = self.rows_of([1 + length] * self.texts)
        return self.texts * (costs.draft(length) + costs.rest) + costs.verify(rows, self.context)


def goodputs_alike(tokens: Sequence[float], costs: Costs, coming: Round) -> list[float]:
    """Return the goodput for each length if every text drafts this length: the expected tokens of the round, divided by
    its predicted time. tokens: the expected tokens of one text, by length."""
    return [
        coming.texts * expected / coming.milliseconds(costs, length)
        for length, expected in enumerate(tokens)
    ]


def goodputs(chance: float, most: int, costs: Costs, coming: Round) -> list[float]:
    """Return this text's goodput for draft lengths 0 to ``most``: its expected tokens in the coming round, divided by
    its time. This time is an equal share of a round in which all texts draft the length that is best for all, plus the
    change that the text's own length makes to that round.

    Every text finds about the same best length for all, so all of them change their lengths together: where a pass is
    as long as its longest text needs, no single text could shorten it. A text pays for its place in the pass, because
    the next text waits for it.
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
    """Whether drafting by all texts of the round would pay if only a part of the expected refusals came (see HOPE)."""
    return bool(coming.chances) and _known_hope(coming, most, costs, costs.version)


@lru_cache(maxsize=8)
def _known_hope(coming: Round, most: int, costs: Costs, version: int) -> bool:
    """Compute ``worth_a_try`` for a round with several texts. The result is the same for all of them, so it is cached.
    version: the version of the costs."""
    hopes = (1 - HOPE * (1 - chance) for chance in coming.chances)
    return _common_length([expected_tokens(hope, most) for hope in hopes], costs, coming) > 0


def _common_length(tokens: Sequence[Sequence[float]], costs: Costs, coming: Round) -> int:
    """Return the length that all texts should draft, or most of them: the one with the least time per token, averaged
    over the texts, if each text then chooses its own length. tokens: expected tokens by text and length."""
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
    """Return a text's times, by its draft length from 0 to ``count`` - 1. A time is the sum of the text's drafting, an
    equal share of a round in which all texts draft the common length, and the change that the text's own length makes
    to the pass."""
    other_rows = [1 + common] * (coming.texts - 1)
    rows = [coming.rows_of([1 + length, *other_rows]) for length in range(count)]
    passes = [costs.verify(count_of_rows, coming.context) for count_of_rows in rows]
    shared = passes[common] / coming.texts - passes[common] + costs.rest
    return [costs.draft(length) + shared + own for length, own in enumerate(passes)]


@lru_cache(maxsize=8)
def _known_times(coming: Round, most: int, costs: Costs, version: int) -> list[float]:
    """Return a text's times for lengths 0 to ``most``. They are the same for all texts of a pass, so they are cached.
    version: the version of the costs."""
    tokens = [expected_tokens(chance, most) for chance in coming.chances]
    return _times(_common_length(tokens, costs, coming), most + 1, costs, coming)


def best_length(curve: Sequence[float]) -> int:
    """Return the length with the greatest goodput; in a tie, the shortest. curve: goodput by length."""
    return max(range(len(curve)), key=curve.__getitem__)
