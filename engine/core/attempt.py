"""A step in progress: the data that one stage hands to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from engine.core.drafter import Kept
from engine.core.load import Load
from engine.core.proposal import Proposal
from engine.core.rule import Verdict
from engine.core.seen import UNSEEN, Draft, Seen

PendingVerdict = Callable[[], tuple[Verdict, Tensor | None]]
"""Gives the verdict, and p for a recorder; on a GPU both are on their way before it is called."""


@dataclass(frozen=True)
class Attempt:
    """A draft on its way to a step. Each stage returns it with its own results.

    proposal: the drafter's, which numbers its nodes from 0. draft: the same as the target reads it, behind the tokens that the
    constraint forces. seen: the target's pass over it. logits: [N+1, V] of the pass, with the constraint applied; None if the
    target made no pass. judging: the verdict, once it is asked for. milliseconds: of the stages so far.
    """

    proposal: Proposal
    draft: Draft
    seen: Seen = UNSEEN
    logits: Tensor | None = None
    judging: PendingVerdict | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)

    @property
    def forced(self) -> int:
        """How many tokens are forced: the drafter's node i is node i + forced of the draft."""
        return len(self.draft.tree) - len(self.proposal.tree)

    def judged_by(
        self, judging: PendingVerdict, seen: Seen, logits: Tensor | None = None
    ) -> Attempt:
        """This attempt after the target's pass, with the verdict still pending."""
        return Attempt(self.proposal, self.draft, seen, logits, judging, self.milliseconds)

    def judged(self, verdict: Verdict) -> tuple[int, int]:
        """How many tokens of the drafter's tree were kept, and how many were judged, of the longest branch. Forced tokens
        are not drafted: that they were kept says nothing about the drafter."""
        kept = max(0, len(verdict.accepted) - self.forced)
        return kept, min(kept + 1, self.proposal.tree.deepest)

    def kept(
        self, verdict: Verdict, output: list[int], features: Tensor | None, load: Load
    ) -> Kept:
        """The outcome in the drafter's own node numbers. Its context already held the forced tokens. features: at the root
        and the kept nodes."""
        forced, draft = self.forced, self.draft
        path, logits, root = verdict.accepted, self.seen.logits, draft.root
        if forced:
            path = [node - forced for node in path[forced:]]
            logits, output = logits[forced:], output[forced:]
            root = draft.tree.tokens[forced - 1]
        if verdict.final is None:
            path = path[:-1]
            features = None if features is None else features[:-1]
        return Kept(
            self.proposal.tree,
            path,
            output,
            logits,
            features,
            root,
            position=draft.position + forced,
            milliseconds=dict(self.milliseconds),
            probes=self.seen.probes,
            load=load,
            final=verdict.final,
        )
