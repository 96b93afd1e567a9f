"""A drafter's proposal, and the tree that the target sees: forced tokens come first in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from engine.drafters.base import Kept
from engine.load import Load
from engine.target.seen import Draft, Seen
from engine.tree import DraftTree
from engine.verifiers.base import Verdict


@dataclass(frozen=True)
class Proposal:
    """A drafter's own tree, and the tree that the target sees.

    own: as the drafter numbers its nodes. tree: the same, below the forced tokens if there are any.
    forced: how many there are. node_of: the drafter's node of each node of ``tree``.
    """

    own: DraftTree
    tree: DraftTree
    forced: int = 0
    node_of: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, own: DraftTree, forced: Sequence[int]) -> Proposal:
        if not forced:
            return cls(own, own)
        tree = DraftTree()
        last = tree.chain(forced, "forced")
        places = tree.graft(own, last)
        tree.exhibits = own.exhibits  # a drafter may add to them when it observes
        return cls(own, tree, len(forced), {place: node for node, place in enumerate(places)})

    def kept(
        self,
        draft: Draft,
        verdict: Verdict,
        output: list[int],
        seen: Seen,
        features: Tensor | None,
        times: dict[str, float],
        load: Load,
    ) -> Kept:
        """The outcome in the drafter's own node numbers. Its context already held the forced tokens."""
        path, logits, root = verdict.accepted, seen.logits, draft.root
        if self.forced:
            path = [self.node_of[node] for node in path if node in self.node_of]
            rows = [self.forced] + [place + 1 for place in self.node_of]
            logits, output = logits[rows], output[self.forced :]
            root = self.tree.tokens[self.forced - 1]
        if verdict.final == "none":
            path = path[:-1]
            features = None if features is None else features[:-1]
        return Kept(
            self.own,
            path,
            output,
            logits,
            features,
            root,
            position=draft.position + self.forced,
            milliseconds=dict(times),
            probes=seen.probes,
            load=load,
            final=verdict.final,
        )
