"""The exhibits of an EAGLE draft for the page: its levels, its re-ranking, and how close its features are to the
target's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from engine.core.drafter import Kept
from engine.core.exhibits import Curve, Later, Series, Table, Token
from engine.core.tree import ROOT
from engine.methods.shared.eagle_tree import Candidates

MOST_ROWS = 6  # the most rows of the re-ranking table
BINS = 5  # number of intervals of confidence


def shown_tree(candidates: Candidates, kept: Sequence[int]) -> list[Later]:
    """Return the tables of levels and of re-ranking; no table if there are no candidates. kept: the numbers of the
    candidates that are in the tree."""
    if not len(candidates):
        return []
    return [Later(lambda: _levels(candidates, kept)), Later(lambda: _ranking(candidates, kept))]


def _levels(candidates: Candidates, kept: Sequence[int]) -> Table:
    rows = []
    for depth in range(1, candidates.depths[-1] + 1):
        level = [place for place, own_depth in enumerate(candidates.depths) if own_depth == depth]
        stay = [place for place in kept if candidates.depths[place] == depth]
        best = max(level, key=lambda place: (candidates.joint[place], -place))
        least = min((candidates.joint[place] for place in stay), default=None)
        parents = len({candidates.parents[place] for place in level})
        rows.append(
            [
                depth,
                parents,
                len(level),
                Token(candidates.tokens[best]),
                candidates.joint[best],
                len(stay),
                least,
            ]
        )
    columns = ["level", "grown from", "candidates", "most confident", "its joint confidence"]
    return Table(
        title="Joint confidence by level",
        columns=[*columns, "kept", "lowest kept"],
        rows=rows,
        note="The confidence of a path is the product of the draft's probabilities along it.",
    )


def _ranking(candidates: Candidates, kept: Sequence[int]) -> Table:
    stays = set(kept)
    rows = [
        [
            Token(candidates.tokens[place]),
            candidates.depths[place],
            candidates.own[place],
            candidates.joint[place],
            "yes" if place in stays else "no",
        ]
        for place in candidates.best(MOST_ROWS)
    ]
    return Table(
        title="Re-ranking",
        columns=["token", "level", "confidence", "joint", "kept"],
        rows=rows,
        note=f"{len(kept)} of {len(candidates)} candidates are kept: the most confident of all levels.",
    )


def shown_path(
    kept: Kept, places: Sequence[int], drafted: Mapping[int, Tensor], true: Tensor
) -> Curve:
    """Return a curve along the accepted path. For each token it shows the cosine between the drafted and the true
    state, the token's q, and its p.

    places: the numbers of the candidates on the path, preceded by ROOT for the text's last token. drafted: number ->
    drafted state [H]. true: the true states [len(places), H].
    """
    near: list[float | None] = [None] * len(places)
    rows = [row for row, place in enumerate(places) if drafted.get(place) is not None]
    if rows:
        drawn = [_numbers(drafted[places[row]]) for row in rows]
        for row, cosine in zip(rows, _cosines(drawn, _numbers(true)[rows]), strict=True):
            near[row] = cosine
    tree = kept.tree
    sure = [None, *(tree.q[node] for node in kept.path)]
    likely = [None, *_likely(kept)]
    return Curve(
        title="Drafted features along the kept path",
        x=list(range(len(places))),
        series=[
            Series("cosine to the true feature", near),
            Series("the draft's confidence", sure),
            Series("the target's p", likely),
        ],
        x_label="tokens kept",
        note="0 is the last token of the text: its feature, too, is drafted until the target has read the token.",
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    """Return the tensor as a float32 array on the host, because small operations take less time in NumPy than in
    torch."""
    return tensor.detach().float().cpu().numpy()


def _cosines(drafted: Sequence[np.ndarray], true: np.ndarray) -> list[float]:
    """Return, for each of R drafted states [H], the cosine to the true state in the same row of ``true`` [R, H]."""
    drafted = np.array(drafted)
    products = [
        np.einsum("rh,rh->r", *pair) for pair in ((drafted, true), (drafted, drafted), (true, true))
    ]
    return (products[0] / np.sqrt(np.maximum(products[1] * products[2], 1e-16))).tolist()


def _likely(kept: Kept) -> list[float | None]:
    """Return p of each accepted node, from the softmax of the target's logits at temperature 1. If the step has no
    logits, return None for each node."""
    if kept.logits is None or not kept.path:
        return [None] * len(kept.path)
    tree = kept.tree
    rows = _numbers(kept.logits)[[tree.parents[node] + 1 for node in kept.path]]
    weights = np.exp(rows - rows.max(-1, keepdims=True))
    tokens = [tree.tokens[node] for node in kept.path]
    return (weights[range(len(tokens)), tokens] / weights.sum(-1)).tolist()


class Outcomes:
    """Counts how many drafted tokens of a text were accepted, separately for intervals of the draft's confidence."""

    def __init__(self) -> None:
        self._sure, self._kept, self._count = [0.0] * BINS, [0] * BINS, [0] * BINS

    def count(self, kept: Kept) -> None:
        """Count the drafted tokens of a step whose parent is the root or an accepted node, because no other token could
        have been accepted."""
        tree, path = kept.tree, set(kept.path)
        for parent in (ROOT, *kept.path):
            for child in tree.children(parent):
                own = tree.q[child] or 0.0
                place = min(int(own * BINS), BINS - 1)
                self._sure[place] += own
                self._kept[place] += child in path
                self._count[place] += 1

    def shown(self) -> list[Later]:
        """Return the curve of all outcomes so far; an empty list if nothing was counted yet."""
        if not any(self._count):
            return []
        so_far = tuple(map(tuple, (self._sure, self._kept, self._count)))
        return [Later(lambda: _outcomes(*so_far))]


def _outcomes(sure: Sequence[float], kept: Sequence[int], counts: Sequence[int]) -> Curve:
    filled = [place for place in range(BINS) if counts[place]]
    mean = [sure[place] / counts[place] for place in filled]
    share = [kept[place] / counts[place] for place in filled]
    return Curve(
        title="Confidence and outcome so far",
        x=mean,
        series=[Series("share kept", share), Series("confidence", mean)],
        x_label="the draft's confidence in a token",
        y_label="share kept",
        note=f"Of {sum(counts)} drafted tokens whose parent was kept.",
    )
