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
"""A function that returns the verdict, and p for a recorder or None. On a GPU, both are already being computed when it
is called."""


@dataclass(frozen=True)
class Attempt:
    """A draft that passes through the stages of a step. Each stage returns a copy with its own results added.

    proposal: the drafter's proposal; its nodes are numbered from 0.
    draft: the tree over which the target's pass runs: the tokens that the constraint forces, and the proposal below
    them.
    seen: the result of the target's pass over the draft.
    logits: [N+1, V], the logits of the target's pass with the constraint applied; None if the target made no pass.
    judging: returns the verdict; None before the target's pass.
    milliseconds: the time of each stage so far.
    """

    proposal: Proposal
    draft: Draft
    seen: Seen = UNSEEN
    logits: Tensor | None = None
    judging: PendingVerdict | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)

    @property
    def forced(self) -> int:
        """The number of forced tokens: node i of the proposal is node i + forced of the draft."""
        return len(self.draft.tree) - len(self.proposal.tree)

    def judged_by(
        self, judging: PendingVerdict, seen: Seen, logits: Tensor | None = None
    ) -> Attempt:
        """This attempt after the target's pass, with the verdict still pending."""
        return Attempt(self.proposal, self.draft, seen, logits, judging, self.milliseconds)

    def judged(self, verdict: Verdict) -> tuple[int, int]:
        """Returns the number of drafted tokens that were kept, and the number of depths of the drafter's tree at which
        tokens were judged. The second number is one more than the first, unless the tree ends there. Forced tokens do
        not count as drafted, because keeping them says nothing about the drafter."""
        kept = max(0, len(verdict.accepted) - self.forced)
        return kept, min(kept + 1, self.proposal.tree.deepest)

    def kept(
        self, verdict: Verdict, output: list[int], features: Tensor | None, load: Load
    ) -> Kept:
        """The outcome in the node numbers of the drafter's own tree. Forced tokens are left out, because the context
        that the drafter received already held them.
        features: the target's hidden states at the root and the kept nodes."""
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
