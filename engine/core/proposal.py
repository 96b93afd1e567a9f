"""A drafter's proposal, and the tree that the target sees: forced tokens come first in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.drafter import Kept
from engine.core.load import Load
from engine.core.rule import Verdict
from engine.core.seen import Draft, Seen
from engine.core.tree import DraftTree


@dataclass(frozen=True)
class Proposal:
    """A drafter's own tree, and the tree that the target sees.

    own: as the drafter numbers its nodes. tree: the same, behind the forced tokens if there are any.
    forced: how many there are; the drafter's node i is node i + forced of ``tree``.
    """

    own: DraftTree
    tree: DraftTree
    forced: int = 0

    @classmethod
    def of(cls, own: DraftTree, forced: Sequence[int]) -> Proposal:
        return cls(own, own.behind(forced) if forced else own, len(forced))

    def judged(self, verdict: Verdict) -> tuple[int, int]:
        """How many tokens of the drafter's tree were kept, and how many were judged, of the longest branch. Forced tokens
        are not drafted: that they were kept says nothing about the drafter."""
        kept = max(0, len(verdict.accepted) - self.forced)
        return kept, min(kept + 1, self.own.deepest)

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
            path = [node - self.forced for node in path[self.forced :]]
            logits, output = logits[self.forced :], output[self.forced :]
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
