"""A left-to-right path through a token lattice: DiffuSpec's causal-consistency path search, and the length of its
drafts.

Li et al., "DiffuSpec: Unlocking Diffusion Language Models for Speculative Decoding" (2025). Each position of a
diffusion model's block offers its likeliest tokens. The likeliest tokens of all positions often form no sentence,
because no position knows the choices of the others. A beam search adds the log-probabilities of a small causal model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from engine.core.exhibits import Choice

Column = list[Choice]


def columns_of(marginals: Tensor, mass: float, most: int, ends: Sequence[int] = ()) -> list[Column]:
    """Return the candidates of each of L positions, given marginals [L, V], the likeliest first.

    A position has the fewest candidates that together hold the probability ``mass``, but at most ``most``. The tokens
    in ``ends``, which end a text, are added at every position, so that a path may end anywhere.
    """
    values, tokens = marginals.topk(min(most, marginals.shape[-1]), dim=-1)
    columns = []
    for place, (row, ids) in enumerate(zip(values.tolist(), tokens.tolist(), strict=True)):
        column, held = [], 0.0
        for p, token in zip(row, ids, strict=True):
            if column and (held >= mass or p == 0):
                break
            column.append(Choice(token, p))
            held += p
        chosen = {choice.token for choice in column}
        ending = ((token, float(marginals[place, token])) for token in ends if token not in chosen)
        column += [Choice(token, p) for token, p in ending if p > 0]
        columns.append(column)
    return columns


@dataclass(frozen=True)
class Path:
    """A path through the lattice. rows: for each position, the index of the chosen candidate. score: the weighted sum
    of both models' log-probabilities."""

    rows: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    score: float = 0.0


def best_path(
    columns: Sequence[Column],
    causal: Callable[[Sequence[int], int], float],
    weight: float,
    beam: int,
    ends: frozenset[int] = frozenset(),
) -> Path:
    """Return the best path that a beam search finds; it ends early if the best path so far ends a text.

    causal(tokens of the path so far, token): the causal model's log-probability of the token. weight: the weight of the
    diffusion model, 0 to 1; the causal model has the rest.
    """
    paths = [Path()]
    for column in columns:
        grown = [
            Path(
                (*path.rows, row),
                (*path.tokens, choice.token),
                path.score
                + weight * math.log(choice.p)
                + (1 - weight) * causal(path.tokens, choice.token),
            )
            for path in paths
            for row, choice in enumerate(column)
        ]
        grown.sort(key=lambda path: -path.score)
        paths = [path for path in grown[:beam] if path is grown[0] or path.tokens[-1] not in ends]
        if paths[0].tokens[-1] in ends:
            break
    return paths[0]


@dataclass
class DraftLength:
    """The length of the next draft: the mean length of recent drafts, plus ``growth`` while all drafted tokens are
    kept.

    The mean length of drafts, and the mean number of kept tokens, are moving averages in which the last step has the
    weight ``recent``. The first draft has the length ``shortest``.
    """

    shortest: int
    longest: int
    growth: int
    recent: float
    drafted: float | None = field(default=None)
    kept: float | None = field(default=None)

    def see(self, drafted: int, kept: int) -> None:
        """Record a step. drafted: tokens of the path, up to an end of text. kept: how many of them were kept."""
        self.drafted = self._mean(self.drafted, drafted)
        self.kept = self._mean(self.kept, kept)

    def next(self) -> int:
        if self.drafted is None:
            return self.shortest
        more = self.growth if self.kept >= self.drafted else 0
        return max(self.shortest, min(math.ceil(self.drafted) + more, self.longest))

    def _mean(self, before: float | None, now: int) -> float:
        return float(now) if before is None else (1 - self.recent) * before + self.recent * now
