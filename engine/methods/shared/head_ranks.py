"""Base class of parts that are sets of heads. A part also stores how often each head's first, second, third, ... choice
was right when the heads were measured.

The shape of a draft tree follows from these shares.
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
"""The entry of config.json with one list per head: the share of positions at which the head's first choice is right,
then the share for its second choice, and so on."""

RANKS = 10
"""The number of choices measured for each head: as many as Medusa's trees use."""

Accuracies = tuple[tuple[float, ...], ...]


def usual(heads: int) -> Accuracies:
    """Assumed accuracies of this many heads, for checkpoints without measured ones.

    In Cai et al. (2024) the first choice of the first head is right at about 60 % of all positions, and one of its
    first five choices at over 80 %. Here the first choice of head k is right at a share of 0.6 * 0.75^(k - 1) of all
    positions, and each further choice at a third of the share of the choice before it.
    """
    return tuple(
        tuple(0.6 * 0.75**head * 3.0**-rank for rank in range(RANKS)) for head in range(heads)
    )


class HeadsPart(ModulePart):
    """A set of heads. accuracies[head][rank]: the share of positions at which the choice of this rank (0: the first
    choice) of this head is right."""

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
        """Return new heads of the right sizes for this target, before any training."""

    @classmethod
    def tiny(cls, target: LanguageModel, opener: Opener | None = None, **options) -> Self:
        """Return two untrained heads with noise on their weights. options: the keyword arguments of ``beginning``."""
        return noisy(cls.beginning(target.model, **options))


def accuracies_of(config: Mapping, heads: int, name: str) -> Accuracies:
    """Return the accuracies that a part's config has for its ``heads`` heads; if the config has none, the result of
    ``usual``. name: the name of the part, for the error message. Raises UserError if the entry is not a table of shares
    with one row per head."""
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
    """Return the shares as they are written to config.json: rounded, and raised to at least 1e-5. So a tree may also
    use choices that were never right when the heads were measured."""
    return [[round(max(share, 1e-5), 5) for share in row] for row in shares]


def cost(share: float) -> float:
    """Return the cost that a choice adds to its path in the tree: -log of the choice's share. So the likeliest paths
    cost least."""
    return -math.log(max(share, 1e-9))
