"""Switch between a small and a large model by the recent uncertainty of the model that is writing.

Simonds, Entropy Adaptive Decoding: Dynamic Model Switching for Efficient Inference (2025).
"""

import math

from torch import Tensor

from engine.core.exhibits import Curve, Exhibit, Gauge, Series
from engine.core.options import number, whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter

SHOWN = 48  # last tokens that the curve shows
SMALL, LARGE = "draft", "target"


class EntropyAdaptiveDrafter(DraftModelDrafter):
    """Proposes one unchecked token while the small model writes, and nothing while the large one does.

    A token's entropy H is that of the next-token distribution of the model that wrote it, before temperature and
    truncation, in bits. After each token the mean of the last ``window`` entropies decides which model writes next:
    above ``threshold`` the large model, otherwise the small one. But the models change places only after the present
    one has written ``duration`` tokens. The small model writes first.
    """

    key = "ead"
    title = "Entropy adaptive decoding"
    family = "chain"
    summary = (
        "A small model writes the easy stretches, unchecked, and a large one the hard ones: lossy."
    )
    draw_kinds = ("unseen",)
    options = (
        number("threshold", 2.0, 0.0, 20.0).meaning(
            "The large model writes while the mean entropy (bits a token) is above this."
        ),
        whole("window", 5, 1, 64).meaning("Tokens over which the entropy is averaged."),
        whole("duration", 5, 1, 64).meaning(
            "Fewest tokens that a model writes before it is relieved."
        ),
    )
    loop = "switching"
    trial = {"threshold": 1.0, "window": 2, "duration": 2}

    def begin(self, start):
        super().begin(start)
        self._charge = SMALL
        self._since = 0  # tokens written since the last switch
        self._own_entropy = 0.0  # entropy of the small model's last distribution
        self._switched: int | None = None  # the place in the text of the last switch
        self._writers: list[str] = []
        self._entropies: list[float] = []
        self._means: list[float] = []

    def propose(self, context, max_depth):
        tree = DraftTree()
        if self._charge == SMALL:
            logits = self._reader.read_logits(context)
            self._own_entropy = entropy(logits)
            q = self._reader.law(logits)
            drawn = None if self.sampling.greedy else self.chance.uniforms(1)[0]
            kind, token = self._pick(q, drawn)
            tree.draw(ROOT, token, kind, q, "draft model")
        return tree

    def observe(self, kept):
        unseen = kept.logits is None
        bits = self._own_entropy if unseen else entropy(kept.logits[0])
        self._writers.append(SMALL if unseen else LARGE)
        self._entropies.append(bits)
        window = self._entropies[-self.settings["window"] :]
        self._means.append(sum(window) / len(window))
        self._since += 1
        self._settle(kept.position + 1)
        kept.tree.exhibits += self._exhibits(kept.position)

    def _settle(self, place: int) -> None:
        """Decide which model writes the token at the position ``place``."""
        writer = LARGE if self._means[-1] > self.settings["threshold"] else SMALL
        if writer != self._charge and self._since >= self.settings["duration"]:
            self._charge, self._since, self._switched = writer, 0, place

    def _exhibits(self, position: int) -> list[Exhibit]:
        """Show the entropies and the small model's share of the text. position: the place of the token just written."""
        count = min(SHOWN, len(self._entropies))
        first = position - count + 1
        threshold = self.settings["threshold"]
        switched = self._switched is not None and self._switched >= first
        window = self.settings["window"]
        curve = Curve(
            "Entropy of the model that wrote each token",
            range(first, position + 1),
            [
                Series("entropy", _short(self._entropies[-count:])),
                Series(f"mean of {window}", _short(self._means[-count:])),
                Series("threshold", [threshold] * count),
            ],
            x_label="position in the text",
            y_label="bits",
            mark=self._switched if switched else None,
            note=f"Above the threshold, in the mean of {window}, the large model takes over. "
            "The mark is the last switch.",
        )
        note = "Lossy: the large model never checks what the small one wrote."
        value = self._writers.count(SMALL) / len(self._writers)
        gauge = Gauge("Share of the text written by the small model", value, note=note)
        return [curve, gauge]


def _short(values: list[float]) -> list[float]:
    """Round the values to the digits that a curve shows. Every step of a trace has a curve, so the size of the curve
    matters."""
    return [round(value, 2) for value in values]


def entropy(logits: Tensor) -> float:
    """Return the entropy of the plain softmax of logits [V], in bits."""
    logs = logits.double().log_softmax(-1)
    terms = logs.exp() * logs
    return -float(terms.nan_to_num(0.0).sum()) / math.log(2)
