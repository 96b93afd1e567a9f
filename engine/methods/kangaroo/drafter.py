"""The target's first layers and a small adapter draft; to verify, the layers above go on from the states of those
layers.

Liu et al., "Kangaroo: Lossless Self-Speculative Decoding via Double Early Exiting" (2024). The first exit comes after a
small, fixed number of layers, whose states a trained adapter (``engine.methods.kangaroo.part``) prepares for the
target's head. The second exit ends the draft once the adapter's likeliest token is less probable than a threshold. Each
of the target's layers runs over a drafted token only once.
"""

import torch
from torch import Tensor

from engine.core.exhibits import Exhibit, Gauge, Layer
from engine.core.exhibits import Layers as LayersExhibit
from engine.core.options import number, whole
from engine.core.proposal import Proposal
from engine.core.tree import DraftTree
from engine.methods.kangaroo.part import Adapter
from engine.methods.shared.own_layers import OwnLayersDrafter


class KangarooDrafter(OwnLayersDrafter):
    """Drafts with the first layers and the adapter.

    The adapter runs over a token's states (its *row*) once the token has been drafted or kept. The rows of the last
    committed tokens may have to wait until the next draft.
    """

    key = "kangaroo"
    shape = "chain"
    title = "First layers and an adapter, Kangaroo"
    summary = "The target's first layers and a small adapter draft; only the layers above verify."
    needs = {"kangaroo": "adapter"}
    options = (
        whole("length", 6, 1, 32, "Length").meaning("Most tokens drafted in a step."),
        number("confidence", 0.6, 0.0, 1.0, "Confidence").meaning(
            "Draft no further once the likeliest token has less probability than this."
        ),
    )
    trial = {"length": 2, "confidence": 0.0}

    def __init__(self, settings, target, adapter: Adapter) -> None:
        super().__init__(settings, target)
        self.adapter = adapter
        self.exit_layer = adapter.config.exit_layer
        self.feature_layers = (self.exit_layer,)

    @classmethod
    def build(cls, settings, models):
        adapter = models.part("kangaroo")
        cls.make_ready(models.target, [adapter.config.exit_layer], settings["length"])
        return cls(settings, models.target, adapter)

    def begin(self, start):
        super().begin(start)
        self._reader = self.adapter.reader(self.target)
        self._committed = 0  # rows of the text that the adapter has read
        self._waiting = start.features  # [R, H], rows of the text that the adapter has not read

    def propose(self, context, max_depth):
        tree = DraftTree()
        length, threshold = self.settings["length"], self.settings["confidence"]
        length = min(length, max_depth)
        begun, sure = self._chain(tree, context, self.exit_layer, length, threshold)
        tree.exhibits = self._exhibits(sure)
        return Proposal(tree, begun=begun)

    def observe(self, kept):
        """Remove the refused tokens from the adapter's cache. While drafting, the adapter has run over the rows of the
        root and of all nodes but the last."""
        read = min(self._reader.length - self._committed, len(kept.features))
        self._committed += read
        self._reader.rewind(self._committed)
        self._waiting = torch.cat([self._waiting, kept.features[read:]])

    def _exit(self, states: Tensor) -> Tensor:
        logits = self._reader.logits(torch.cat([self._waiting, states]))
        self._committed += len(self._waiting)
        self._waiting = self._waiting[:0]
        return logits

    def _sure(self, q: Tensor, token: int) -> float:
        return float(q.max())

    def _exhibits(self, sure: float) -> list[Exhibit]:
        exit_layer, threshold = self.exit_layer, self.settings["confidence"]
        shown = [
            Layer("run" if layer < exit_layer else "skipped") for layer in range(self.target.layers)
        ]
        shown[exit_layer - 1] = Layer("adapter", label="the adapter reads this layer's output")
        note = "To verify, the layers above read all drafted tokens in one pass."
        stack = LayersExhibit("Layers that draft", shown, note=note)
        low = sure < threshold
        gauge = Gauge(
            "The adapter's confidence at the last drafted token",
            sure,
            mark=threshold,
            note="Below the threshold, so drafting stopped."
            if low
            else "The draft has its full length.",
        )
        return [stack, gauge]
