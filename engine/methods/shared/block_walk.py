"""Makes a chain of drafted tokens from a block of predicted distributions.

``walk`` picks the tokens from left to right, each from a distribution that depends on the token before. ``blind`` picks
all tokens at once, each from the marginal distribution at its position.
"""

from collections.abc import Callable, Sequence

from torch import Tensor

from engine.core.chance import DraftChance
from engine.core.exhibits import Choice, Lattice
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree

SHOWN = 5  # tokens shown for each place
Laws = Callable[[int, int], Tensor | None]
"""A function of a position in the draft (0: the first drafted token) and the token before this position. It returns q
[V] at this position, or None to end the chain before it. The decision to end may depend on earlier tokens, but not on
the token that is about to be drawn."""


def walk(root: int, laws: Laws, most: int, sampling: Sampling, chance: DraftChance) -> DraftTree:
    """Return a chain of up to ``most`` drafted tokens after the root. Each token is drawn from the distribution that
    ``laws`` returns; at temperature 0 the likeliest token is taken."""
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
    """Return a chain after the root, with one token for each of the L rows of ``marginals`` [L, V]. Each token is drawn
    from its row; at temperature 0 the likeliest token is taken. The draws are independent, so each row is the true law
    of its token."""
    tree, parent = DraftTree(), ROOT
    if sampling.greedy:
        kind, tokens = "one_hot", marginals.argmax(-1)
    else:
        kind, tokens = "iid", chance.pick(marginals, chance.uniforms(len(marginals)))
    for place, token in enumerate(tokens.tolist()):
        parent = tree.draw(parent, token, kind, marginals[place], f"block {place + 1}")
    return tree


def places_shown(marginals: Tensor, tokens: Sequence[int]) -> Lattice:
    """A picture of the block: for each of its L positions, the likeliest tokens with their q, and the token that was
    picked. marginals: q [L, V]. tokens: the picked token of each position."""
    columns, path = [], []
    for q, picked in zip(marginals, tokens, strict=True):
        likeliest = q.topk(min(SHOWN, len(q))).indices.tolist()
        if picked not in likeliest:
            likeliest[-1] = picked
        columns.append([Choice(token, float(q[token])) for token in likeliest])
        path.append(likeliest.index(picked))
    note = "All places were guessed in one pass, and none knows what stands at another."
    return Lattice("Guesses of each place", columns, path, note=note)
