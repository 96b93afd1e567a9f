"""A draft tree as the arrays that a kernel walks."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.core.transfer import to_device
from engine.core.tree import ROOT, DraftTree

KINDS = ("one_hot", "iid", "without_replacement")


@dataclass(frozen=True)
class FlatTree:
    """N nodes, N + 1 places (place 0 is the root, place i + 1 is node i), M draws.

    tokens: int32 [N]. depths: int32 [N + 1], of places. draws: int32 [M], nodes in the order
    drawn, grouped by place; first: int32 [N + 2], where the draws of each place begin.
    kinds: int32 [N + 1], index into KINDS. q_row: int32 [N + 1], the place's row in q, or -1.
    q: fp32 [Q, V], the distributions drawn from (Q may be 0). repeats_q: whether more than one
    draw without replacement was made from some q.
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
        """The tree with other tokens, int32 [N]."""
        return replace(self, tokens=ids)

    @classmethod
    def of(cls, tree: DraftTree, vocabulary: int, device=None) -> "FlatTree":
        """Distributions shorter than the vocabulary are padded with zeros.

        The host does not wait: all whole numbers cross in one copy, the distributions in another.
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
    """How the children of each place of a tree were proposed, on the host; names as in ``FlatTree``.

    q: the distributions, on the drafter's device.
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
        """Raises ValueError where siblings differ in kind or in the law they were drawn from."""
        draws, first, kinds, q_row, q = [], [0], [], [], []
        for place in range(ROOT, len(tree)):
            siblings = tree.draws.get(place, [])
            kind, law = (siblings[0].kind, siblings[0].law) if siblings else ("one_hot", None)
            drawn = kind != "one_hot"
            if any(one.kind != kind or (drawn and one.law != law) for one in siblings):
                raise ValueError(f"the draws under {place} differ in kind or law")
            draws += [one.node for one in siblings]
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
