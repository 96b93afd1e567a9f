"""Base class of drafters that draft with the target's first layers."""

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
    """Drafts a chain, token by token, with the first layers of the target, in the target's own session. The rows of the
    drafted tokens stay in the session, so in the verify pass only the remaining layers are run over them."""

    family = "self"
    draw_kinds = ("iid",)
    uses_target = True

    def __init__(self, settings, target) -> None:
        super().__init__(settings)
        self.target = target

    @staticmethod
    def make_ready(target: LanguageModel, cuts: Sequence[int], nodes: int) -> None:
        """Prepare the passes that end at one of the layers ``cuts``, and the passes that run the remaining layers over
        about ``nodes`` nodes, before a text is timed. Also check, at the first of these layers, whether the target can
        run its remaining layers separately."""
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
        """Append up to ``length`` tokens to the tree, drafted with the first ``layer`` layers. The chain ends after the
        first token whose confidence (see ``_sure``) is below ``stop``. This token stays in the tree, because a drawn
        token must never be dropped.

        Returns two values: the rows over which the layers were run, with their hidden states, and the confidence of the
        last token.
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
        """Turn the hidden states [R, H] of rows after the drafting layers into the logits [1, V] after the last row."""
        return self.target.head(self.target.norm(states[-1:]))

    def _sure(self, q: Tensor, token: int) -> float:
        """Return the confidence in a token that was drafted from q [V]. The caller compares it with its threshold."""
        return float(q[token])

    def law(self, logits: Tensor) -> Tensor:
        """Turn logits [R, V] into q [R, V] on the host, with temperature and truncation applied."""
        return display_distribution(logits, self.sampling).cpu()
