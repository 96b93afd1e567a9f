"""A pass of the target over a draft: its input and its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.core.tree import DraftTree

MOST_PROBES = 64  # the most probes that a drafter may add to a pass


@dataclass(frozen=True)
class Join:
    """Probe rows that join a pass at one layer.

    layer: the layer whose input they become; at 0 they replace token embeddings. count: the number of rows that join.
    made: a function from the pass's states [R, H] at that layer (root, tree and the probes that joined before) to the
    states [count, H] of the new probes.
    """

    layer: int
    count: int
    made: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Probes:
    """Extra rows in the target's pass that see the tree, and are neither judged nor committed.

    joins: where the probes enter the pass; the layers never decrease. parents: for each probe, ROOT, a node of the
    tree, or the number of nodes + i for the i-th probe, which must come earlier. again: for the root and each node, the
    index of a probe with the same token, whose logits also predict the token that follows this node; empty if the
    probes do not repeat tokens. choices: if the last probe asks the target a question, the tokens among which its
    answer is chosen, in rising order; empty otherwise.
    """

    joins: Sequence[Join]
    parents: Sequence[int]
    again: Sequence[int] = ()
    choices: Sequence[int] = ()

    @classmethod
    def embedded(
        cls,
        vectors: Tensor,
        parents: Sequence[int],
        again: Sequence[int] = (),
        choices: Sequence[int] = (),
    ) -> Probes:
        """Probes whose input is vectors [M, H] instead of token embeddings."""
        join = Join(0, len(vectors), lambda states: vectors.to(states.device))
        return cls((join,), parents, again, choices)

    def __len__(self) -> int:
        return len(self.parents)

    def behind(self, forced: int) -> Probes:
        """These probes for the tree that ``DraftTree.behind`` makes, which has ``forced`` forced tokens between the
        root and this tree's nodes. Each probe keeps its parent; if this was the root, it is now the last forced
        token."""
        return replace(
            self,
            joins=[replace(join, made=_below(join.made, forced)) for join in self.joins],
            parents=[parent + forced for parent in self.parents],
            # where the constraint leaves one token, every probe predicts that token
            again=[*self.again[:1]] * forced + [*self.again],
        )

    @property
    def rows(self) -> list[int]:
        """The row of each probe's parent: the root in row 0, node i in row i + 1, probes after the nodes."""
        return [parent + 1 for parent in self.parents]


def _below(made: Callable[[Tensor], Tensor], first: int) -> Callable[[Tensor], Tensor]:
    return lambda states: made(states[first:])


@dataclass(frozen=True)
class Begun:
    """A pass over rows of a draft of which only the target's first layers have been computed, by a drafter that
    consists of these layers.

    The rows are the session's scratch rows: the root, the forced tokens and the first nodes, in the order of a draft's
    rows. They have passed through the layers below ``layer``. states: [R, H], the hidden states of these R rows before
    that layer.
    """

    layer: int
    states: Tensor


@dataclass(frozen=True)
class Draft:
    """A tree below the root of a text, in the form in which the target reads it.

    position: the number of tokens committed before the step, which is the position of the first drafted token. probes:
    extra rows of the pass. begun: a pass over the first of the tree's rows that the drafter has computed through the
    target's first layers, and that the target's pass may continue. features: whether the drafter needs the target's
    hidden states from this pass.
    """

    root: int
    tree: DraftTree
    position: int
    probes: Probes | None = None
    begun: Begun | None = None
    features: bool = True

    @property
    def count(self) -> int:
        """The number of rows of the pass: the root, the tree and the probes."""
        return 1 + len(self.tree) + (0 if self.probes is None else len(self.probes))

    @property
    def rows(self) -> tuple[list[int], list[int]]:
        """The token of each row, and the row of its parent (-1 for the root). The root is row 0, node i is row i +
        1."""
        return [self.root, *self.tree.tokens], [-1] + [parent + 1 for parent in self.tree.parents]


@dataclass(frozen=True)
class ReadChain:
    """The result of passes over one row each, where each row's token is the likeliest one after the row before. logits:
    [R, V], after each of the R rows. tokens: the likeliest token after each row. features: [R, n*H], hidden states at
    each row, or None."""

    logits: Tensor
    tokens: list[int]
    features: Tensor | None

    @classmethod
    def of(cls, passes: Sequence[tuple[Tensor, Tensor | None]], tokens: list[int]) -> ReadChain:
        """Join the logits and features of passes over one row each."""
        logits, features = zip(*passes, strict=True)
        states = None if features[0] is None else torch.cat(features)
        return cls(torch.cat(logits), tokens, states)


@dataclass(frozen=True)
class Seen:
    """The result of a pass over the root (row 0) and a tree of N nodes (node i in row i + 1).

    logits: [N + 1, V], or None if the target made no pass. features: the requested hidden states [N + 1, n*H], or None.
    probes: logits [M, V] of the M probe rows, or None.
    """

    logits: Tensor | None
    features: Tensor | None
    probes: Tensor | None = None

    def places_of(self, rows: list[int]) -> list[int]:
        """The indices, in the features and in the cache, of these rows, which are the root and the kept path."""
        return rows


UNSEEN = Seen(None, None)
"""The result for a draft that the target has not read."""
