"""The common base of drafters that run the target's first layers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.sampling import display_distribution
from engine.core.seen import Begun
from engine.core.tree import ROOT, DraftTree
from engine.model.going_on import goes_on
from engine.model.language_model import LanguageModel
from engine.model.layers import Layers


class OwnLayersDrafter(Drafter):
    """Drafts a chain row by row in the target's own session. The rows already read stay there, so that the
    target goes on from the exit instead of reading them again."""

    family = "self"
    draw_kinds = ("iid",)
    uses_target = True

    def __init__(self, settings, target) -> None:
        super().__init__(settings)
        self.target = target

    @staticmethod
    def make_ready(target: LanguageModel, cuts: Sequence[int], nodes: int) -> None:
        """Prepare, before a text is timed, the passes that leave the target at these layers, or go on from there
        with about ``nodes`` nodes. Whether the target can go on is tested at the first of these layers."""
        target.prepare_stretches(cuts, nodes)
        goes_on(target, cuts[0])

    def begin(self, start):
        super().begin(start)
        self._draft_passes = 0

    def passes(self):
        return {"own layers": self._draft_passes}

    def _chain(
        self, tree: DraftTree, context: Sequence[int], layer: int, length: int, stop: float
    ) -> tuple[Begun, float]:
        """Draft up to ``length`` tokens with the first ``layer`` layers; stop after a token less sure than
        ``stop``. That token stays, because a drawn token must never be dropped.

        Returns the rows that were read, and how sure the last token was.
        """
        session, parent, sure = self.start.target, ROOT, 1.0
        rows, states = context[session.length :], []
        while len(tree) < length and sure >= stop:
            parents = range(session.rows - 1, session.rows - 1 + len(rows))
            states.append(session.through(rows, Layers(stop=layer), parents))
            self._draft_passes += 1
            q = self.law(self._exit(states[-1]))[0]
            if self.sampling.greedy:
                kind, token = "one_hot", int(q.argmax())
            else:
                kind, token = "iid", self.chance.draw(q)
            parent = tree.draw(parent, token, kind, q, "own layers")
            rows, sure = [token], self._sure(q, token)
        return Begun(layer, torch.cat(states)), sure

    def _exit(self, states: Tensor) -> Tensor:
        """Hidden states [R, H] of the next rows, behind the drafting layers -> logits [1, V] of the last"""
        return self.target.head(self.target.norm(states[-1:]))

    def _sure(self, q: Tensor, token: int) -> float:
        """The number that is compared with the threshold after a token was drafted from q [V]."""
        return float(q[token])

    def law(self, logits: Tensor) -> Tensor:
        """logits [R, V] -> q [R, V] on the host"""
        return display_distribution(logits, self.sampling).cpu()
