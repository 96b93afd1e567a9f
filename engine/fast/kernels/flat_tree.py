"""Writes a draft tree as the arrays that a kernel walks.

A place is the root or a node: a point of the tree at which children may have been drawn.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.core.transfer import to_device
from engine.core.tree import ROOT, DraftTree

KINDS = ("one_hot", "iid", "without_replacement")


@dataclass(frozen=True)
class FlatTree:
    """A tree with N nodes, N + 1 places (the root and the nodes) and M draws. Place 0 is the root; place i + 1 is node
    i.

    tokens: int32 [N]. depths: int32 [N + 1], the depth of each place. draws: int32 [M], the drawn nodes, grouped by the
    place under which they were drawn, each group in the order of its draws. first: int32 [N + 2], the index in
    ``draws`` at which the group of each place begins. kinds: int32 [N + 1], the kind of the place's draws, an index
    into KINDS. q_row: int32 [N + 1], the place's row in q, or -1. q: fp32 [Q, V], the draft distributions; Q may be 0.
    repeats_q: whether some place has several draws without replacement from its q.
    """

    tokens: Tensor
    depths: Tensor
    draws: Tensor
    first: Tensor
    kinds: Tensor
    q_row: Tensor
    q: Tensor
    repeats_q: bool

    @property
    def size(self) -> int:
        return self.tokens.shape[0]

    def holding(self, ids: Tensor) -> "FlatTree":
        """A copy of this tree with the tokens ``ids``, int32 [N]."""
        return replace(self, tokens=ids)

    @classmethod
    def of(cls, tree: DraftTree, vocabulary: int, device=None) -> "FlatTree":
        """The arrays of a draft tree, on the device. Distributions shorter than the vocabulary are padded with zeros.

        The host does not wait for the device: one copy moves all whole numbers, another copy the distributions.
        """
        places = Places.of(tree)
        parts = (tree.tokens, [0, *tree.depths], *places.numbers)
        numbers = torch.tensor([number for part in parts for number in part], dtype=torch.int32)
        parts = to_device(numbers, device).split([len(part) for part in parts])
        q = [_padded(q, vocabulary) for q in places.q]
        stacked = torch.stack(q) if q else torch.empty(0, vocabulary)
        repeats = any(
            draws[0].kind == "without_replacement" and len(draws) > 1
            for draws in tree.draws.values()
        )
        return cls(*parts, q=to_device(stacked, device), repeats_q=repeats)


@dataclass(frozen=True)
class Places:
    """How the children of each place of a tree were proposed, as lists on the host. A place is the root or a node; the
    names are those of ``FlatTree``.

    q: the draft distributions, on the drafter's device.
    """

    draws: list[int]
    first: list[int]
    kinds: list[int]
    q_row: list[int]
    q: list[Tensor]

    @property
    def numbers(self) -> tuple[list[int], ...]:
        return self.draws, self.first, self.kinds, self.q_row

    @classmethod
    def of(cls, tree: DraftTree) -> "Places":
        """List the draws of a draft tree. Raises ValueError if siblings differ in their kind of draw, or in the
        distribution that they were drawn from."""
        draws, first, kinds, q_row, q = [], [0], [], [], []
        for place in range(ROOT, len(tree)):
            siblings = tree.draws.get(place, [])
            kind, law = (siblings[0].kind, siblings[0].law) if siblings else ("one_hot", None)
            drawn = kind != "one_hot"
            if any(draw.kind != kind or (drawn and draw.law != law) for draw in siblings):
                raise ValueError(f"the draws under {place} differ in kind or law")
            draws += [draw.node for draw in siblings]
            first.append(len(draws))
            kinds.append(KINDS.index(kind))
            q_row.append(len(q) if drawn else -1)
            if drawn:
                q.append(tree.laws[law])
        return cls(draws, first, kinds, q_row, q)


def _padded(q: Tensor, vocabulary: int) -> Tensor:
    padded = q.new_zeros(vocabulary, dtype=torch.float32)
    padded[: q.shape[-1]] = q
    return padded
