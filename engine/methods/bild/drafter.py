"""The small model writes as long as it is sure of itself.

Kim et al., Speculative Decoding with Big Little Decoder (2023): the fallback policy. The rollback policy is the rule
``engine.methods.bild.rule``.
"""

from engine.core.exhibits import Gauge
from engine.core.options import number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter


class BigLittleDrafter(DraftModelDrafter):
    """The large model takes over where the small model's highest probability falls below the threshold.

    No token is drawn at that position. Whether a token is drawn at a position never depends on the token itself, so the
    drafter is exact if an exact rule replaces its own.
    """

    key = "bild"
    title = "Big Little Decoder"
    family, shape = "chain", "chain"
    summary = (
        "A small model writes until it is unsure, and the large one corrects only what it finds "
        "unlikely: lossy."
    )
    options = (
        number("fallback", 0.4, 0.0, 1.0, "fallback threshold").meaning(
            "The small model stops where its highest probability is below this."
        ),
        whole("length", 10, 1, 32).meaning("Most tokens that the small model writes in a step."),
    )
    default_verifier = default_greedy_verifier = "bild"
    reads_chains = True
    trial = {"fallback": 0.3, "length": 3}

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        length = min(self.settings["length"], max_depth)
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        q = self._reader.read(context, length if drawn is None else 1)
        while (sure := float(q.max())) >= self.settings["fallback"]:
            depth = len(tree)
            kind, token = self._pick(q, None if drawn is None else drawn[depth])
            parent = tree.draw(parent, token, kind, q, "draft model")
            if depth + 1 == length:
                break
            q = self._reader.expand([parent], tree.tokens[-1:], tree.parents[-1:])[0]
        tree.exhibits.append(self._confidence(sure))
        return tree

    def _confidence(self, sure: float) -> Gauge:
        threshold = self.settings["fallback"]
        title = "How sure the small model was at its last place"
        note = (
            "It was below the fallback threshold: the large model takes over."
            if sure < threshold
            else "It was still sure; the step had its most tokens."
        )
        return Gauge(title, sure, mark=threshold, note=note)
