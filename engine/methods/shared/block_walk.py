"""A chain from a block of guesses: its places read from left to right, each in the light of the token that was picked before it;
or all at once, each place blind to the others."""

from collections.abc import Callable, Sequence

from torch import Tensor

from engine.core.chance import DraftChance
from engine.core.exhibits import Choice, Lattice
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree

SHOWN = 5  # tokens of a place in the picture
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


def blind(marginals: Tensor, sampling: Sampling, chance: DraftChance) -> DraftTree:
    """A chain below the root with a token for each place, drawn from its own q, [L, V]; at temperature 0 the likeliest one. What
    stands at a place does not depend on the tokens before it, so q is the true law of its token, whatever they are."""
    tree, parent = DraftTree(), ROOT
    if sampling.greedy:
        kind, tokens = "one_hot", marginals.argmax(-1)
    else:
        kind, tokens = "iid", chance.pick(marginals, chance.uniforms(len(marginals)))
    for place, token in enumerate(tokens.tolist()):
        parent = tree.draw(parent, token, kind, marginals[place], f"block {place + 1}")
    return tree


def places_shown(marginals: Tensor, tokens: Sequence[int]) -> Lattice:
    """The likeliest tokens of each place with their q [L, V], and the ones that were picked."""
    columns, path = [], []
    for q, picked in zip(marginals, tokens, strict=True):
        likeliest = q.topk(min(SHOWN, len(q))).indices.tolist()
        if picked not in likeliest:
            likeliest[-1] = picked
        columns.append([Choice(token, float(q[token])) for token in likeliest])
        path.append(likeliest.index(picked))
    note = "All places were guessed in one pass, and none knows what stands at another."
    return Lattice("Guesses of each place", columns, path, note=note)
