"""Goodput: the tokens that a step is expected to write, divided by the time that it is predicted to take.

Liu et al., Optimizing Speculative Decoding for Serving Large Language Models Using Goodput (2024). The tokens
follow from moving averages of the shares of the texts' drafted tokens that were kept, the time from
``engine.methods.smartspec.round_costs``. The paper maximises the tokens of all texts of a step. Here each text maximises its own
tokens for its share of the time: texts whose drafts fail would otherwise keep their places in the pass for longer, while
others wait for them.
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
"""Share of the time by which another size of the passes must be better than the present one, because a change has its
price: a draft model that paused must first read the text since."""
HOPE = 0.5  # share of the expected refusals that ``worth_a_try`` leaves out


def expected_tokens(chance: float, most: int) -> list[float]:
    """By length, 0 to ``most``: tokens of a step, including the final one, if each drafted token is kept with
    this chance provided that those before it are."""
    return list(accumulate(chance**depth for depth in range(most + 1)))


@dataclass(frozen=True)
class Round:
    """The coming round. texts: that share its pass. context: of all of them. chances: with which a drafted token of
    each of them is kept; none: all are like this text. rows_of, rows: as in ``Load``. longest: draft of the others."""

    texts: int = 1
    context: float = 0.0
    chances: tuple[float, ...] = ()
    rows_of: RowsOf = sum
    rows: int = 0
    longest: int = 0

    @classmethod
    def after(cls, load: Load, asked: int, longest: int = 0) -> Round:
        """The round after this pass. asked: the number of texts to assume, all like this one; 0: the actual ones.
        longest: the longest draft of a text that is not about to end."""
        if asked:
            return cls(asked, load.context / load.texts * asked)
        others = load.chances if load.texts > 1 else ()
        return cls(load.texts, load.context, others, load.rows_of, load.rows, longest)

    def milliseconds(self, costs: Costs, length: int) -> float:
        """Predicted time, in the unit of ``costs``, if every text drafts this many tokens."""
        rows = self.rows_of([1 + length] * self.texts)
        return self.texts * (costs.draft(length) + costs.rest) + costs.verify(rows, self.context)


def goodputs_alike(tokens: Sequence[float], costs: Costs, coming: Round) -> list[float]:
    """By length: expected tokens of a round in which every text drafts this many, divided by its predicted time.
    tokens: of a text, by length."""
    return [
        coming.texts * each / coming.milliseconds(costs, length)
        for length, each in enumerate(tokens)
    ]


def goodputs(chance: float, most: int, costs: Costs, coming: Round) -> list[float]:
    """By the length of this text's draft, 0 to ``most``: the text's expected tokens in the coming round, divided by
    the text's time. This time is an equal share of a round in which all texts draft the length best for all, plus the
    change that the text's own length makes to that round.

    Every text finds about the same length for all, so all move together: where a pass is as long as its longest
    text, none could shorten it alone. A text pays for its place in the pass, because the next text waits for it.
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
    """Whether drafting by all texts of the round would pay if fewer of their tokens were refused than it seems."""
    return bool(coming.chances) and _known_hope(coming, most, costs, costs.version)


@lru_cache(maxsize=8)
def _known_hope(coming: Round, most: int, costs: Costs, version: int) -> bool:
    """The same for all texts of a pass, so it is computed once. version: of the costs."""
    hopes = (1 - HOPE * (1 - chance) for chance in coming.chances)
    return _common_length([expected_tokens(hope, most) for hope in hopes], costs, coming) > 0


def _common_length(tokens: Sequence[Sequence[float]], costs: Costs, coming: Round) -> int:
    """The length that all texts should draft, or most of them: where a token takes the least time, averaged over the
    texts, if each then chooses its own length. tokens: by text and length."""
    count = len(tokens[0])
    # where passes are padded, many lengths make passes of one size, and the longest of them speaks for all
    by_rows = {coming.rows_of([1 + length] * coming.texts): length for length in range(count)}

    def time(rows: int) -> float:
        times = _times(by_rows[rows], count, costs, coming)
        return (1 - STAY * (rows == coming.rows)) * sum(
            min(map(truediv, times, own)) for own in tokens
        )

    return by_rows[min(by_rows, key=time)]


def _times(common: int, count: int, costs: Costs, coming: Round) -> list[float]:
    """By a text's length, below ``count``: its drafting, an equal share of a round in which all draft the common length,
    and the time by which its own length changes the pass."""
    others = [1 + common] * (coming.texts - 1)
    rows = [coming.rows_of([1 + length, *others]) for length in range(count)]
    passes = [costs.verify(each, coming.context) for each in rows]
    shared = passes[common] / coming.texts - passes[common] + costs.rest
    return [costs.draft(length) + shared + own for length, own in enumerate(passes)]


@lru_cache(maxsize=8)
def _known_times(coming: Round, most: int, costs: Costs, version: int) -> list[float]:
    """The same for all texts of a pass, so they are computed once. version: of the costs."""
    tokens = [expected_tokens(chance, most) for chance in coming.chances]
    return _times(_common_length(tokens, costs, coming), most + 1, costs, coming)


def best_length(curve: Sequence[float]) -> int:
    """The length with the greatest goodput; in a tie, the shortest."""
    return max(range(len(curve)), key=curve.__getitem__)
