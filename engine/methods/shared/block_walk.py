"""A chain from a block: the places of a block drafter's block, read from left to right, each in the light of the token that was
picked before it."""

from collections.abc import Callable

from torch import Tensor

from engine.core.chance import DraftChance
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree

Laws = Callable[[int, int], Tensor | None]
"""Place (0 is right behind the root) and the token before it -> q [V] there; None where the chain ends. It must not know the
token that is about to be drawn: the chain may end for any reason that the tokens before give."""


def walk(root: int, laws: Laws, most: int, sampling: Sampling, chance: DraftChance) -> DraftTree:
    """A chain of up to ``most`` tokens below the root, drawn from the laws; at temperature 0 the likeliest ones."""
    tree, parent, before = DraftTree(), ROOT, root
    for place in range(most):
        law = laws(place, before)
        if law is None:
            break
        kind = "one_hot" if sampling.greedy else "iid"
        before = int(law.argmax()) if sampling.greedy else chance.draw(law)
        parent = tree.draw(parent, before, kind, law, f"block {place + 1}")
    return tree
