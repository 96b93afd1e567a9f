"""The common base of sets of heads: how often the first, second, third ... choice of each head is right.

These shares give the tree of a set of heads.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from transformers import PreTrainedModel

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener
from engine.parts.module_part import ModulePart, noisy

FIELD = "draftscope_accuracies"
"""The entry of config.json: one list per head, with the share of right first choices, second choices ..."""

RANKS = 10
"""Choices of a head that are measured, as many as Medusa's trees use."""

Accuracies = tuple[tuple[float, ...], ...]


def usual(heads: int) -> Accuracies:
    """Accuracies for checkpoints that bring no figures of their own.

    In Cai et al. (2024) the first choice of the first head is right at about 60 % of all positions, and one of its
    first five at over 80 %. Here head k's first choice is right at 0.6 * 0.75^(k - 1) of them, and each further choice
    at a third of the positions of the one before it.
    """
    return tuple(
        tuple(0.6 * 0.75**head * 3.0**-rank for rank in range(RANKS)) for head in range(heads)
    )


class HeadsPart(ModulePart):
    """accuracies: by head and rank; there is a row for each head."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.accuracies: Accuracies = usual(heads)

    def __len__(self) -> int:
        return len(self.accuracies)

    def settle(self, config, target, folder):
        self.accuracies = accuracies_of(config, len(self.accuracies), folder)

    @classmethod
    @abstractmethod
    def beginning(cls, target: PreTrainedModel, heads: int = 2) -> Self:
        """The heads before their training, for a module's sizes."""

    @classmethod
    def tiny(cls, target: LanguageModel, opener: Opener | None = None, **options) -> Self:
        """Two untrained heads with noise on their weights. options: those of ``beginning``."""
        return noisy(cls.beginning(target.model, **options))


def accuracies_of(config: Mapping, heads: int, name: str) -> Accuracies:
    """The accuracies in a part's config, or the usual ones. Raises UserError if the entry is not such a table."""
    rows = config.get(FIELD)
    if rows is None:
        return usual(heads)
    try:
        shares = tuple(tuple(float(share) for share in row) for row in rows)
    except (TypeError, ValueError):
        shares = ()
    whole = len(shares) == heads and all(0 < len(row) <= 1000 for row in shares)
    if not whole or not all(0 <= share <= 1 for row in shares for share in row):
        raise UserError(
            f"The head accuracies in the configuration of {name} are not a table of shares."
        )
    return shares


def table(shares: Sequence[Sequence[float]]) -> list[list[float]]:
    """The table as it is written; no share is 0, so that a tree may go beyond the choices that were seen."""
    return [[round(max(share, 1e-5), 5) for share in row] for row in shares]


def cost(share: float) -> float:
    """The cost of a choice in a path of the tree: the likeliest paths are the cheapest."""
    return -math.log(max(share, 1e-9))
