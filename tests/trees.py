"""Random draft trees for property tests."""

import torch
from hypothesis import strategies as st

from engine.core.tree import ROOT, DraftTree

KINDS = ("one_hot", "iid", "without_replacement")


@st.composite
def trees(draw, vocabulary: int = 6, most_draws: int = 12) -> DraftTree:
    """Draw a valid tree. Each draw goes under any existing place; tokens repeat if the kind of draw allows it."""
    tree = DraftTree()
    for _ in range(draw(st.integers(0, most_draws))):
        parent = draw(st.integers(ROOT, len(tree) - 1))
        token = draw(st.integers(0, vocabulary - 1))
        known = tree.draws.get(parent)
        kind = known[0].kind if known else draw(st.sampled_from(KINDS))
        there = {tree.tokens[child] for child in tree.children(parent)}
        if kind == "iid" or token not in there:
            q = None
            if kind != "one_hot":
                fresh = torch.full((vocabulary,), 1 / vocabulary)
                q = tree.laws[known[0].law] if known else fresh
            tree.draw(parent, token, kind, q, "test")
    return tree
