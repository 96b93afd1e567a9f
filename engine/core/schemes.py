"""How the drafts under one node were sampled, as far as acceptance depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.tree import DraftTree, Draw

IID, EXCLUSIVE = "iid", "without_replacement"


@dataclass(frozen=True)
class Scheme:
    """Draws from one law, and fixed tokens.

    kind: ``iid`` or ``without_replacement``. q: [V], the law. draws: how many come from it. fixed:
    one-hot guesses. fixed_first: whether these are judged before the draws.
    """

    kind: str
    q: Tensor
    draws: int
    fixed: tuple[int, ...] = ()
    fixed_first: bool = False


def scheme_of(tree: DraftTree, draws: Sequence[Draw]) -> Scheme | None:
    """The scheme of the draws under one node; None where all are one-hot, where those from a law
    differ in kind or law, or where fixed tokens stand on both sides of a draw."""
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
