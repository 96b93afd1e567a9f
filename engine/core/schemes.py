"""How the drafts under one node were drawn: the facts on which their acceptance depends."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.tree import DraftTree, Draw

IID, EXCLUSIVE = "iid", "without_replacement"


@dataclass(frozen=True)
class Scheme:
    """Draws from one law under a node, and fixed tokens besides them.

    kind: ``iid`` or ``without_replacement``. q: [V], the law. draws: the number of draws from q. fixed: tokens guessed
    one-hot.
    fixed_first: whether the fixed tokens are judged before the draws.
    """

    kind: str
    q: Tensor
    draws: int
    fixed: tuple[int, ...] = ()
    fixed_first: bool = False


def scheme_of(tree: DraftTree, draws: Sequence[Draw]) -> Scheme | None:
    """The scheme of the draws under one node. None where all draws are one-hot, where the draws from a law differ in
    kind or law, or where fixed tokens stand both before and after a draw."""
    random_draws = [entry for entry in draws if entry.kind != "one_hot"]
    if not random_draws or len({(entry.kind, entry.law) for entry in random_draws}) > 1:
        return None
    place = draws.index(random_draws[0])
    last = len(draws) - 1 - [*reversed(draws)].index(random_draws[-1])
    if last - place + 1 != len(random_draws) or (place > 0 and last < len(draws) - 1):
        return None
    fixed = tuple(tree.tokens[entry.node] for entry in draws if entry.kind == "one_hot")
    law = tree.laws[random_draws[0].law]
    return Scheme(random_draws[0].kind, law, len(random_draws), fixed, place > 0)
