"""The draft model sees a smaller picture; a gate that knows the question picks how it is made smaller, or that it is left out.

Huang et al., SpecVLM: Fast Speculative Decoding in Vision-Language Models (2025). Of the paper's operators: a third of the
patches, the means of three side by side, and the text alone. Its convolution and its resampler are left out, and so is its draft, a
cell on the target's features: here an ordinary draft model has learned to read whole, pruned and pooled pictures alike.
"""

from engine.core.exhibits import Table
from engine.methods.shared.operator_gate import OPERATORS
from engine.methods.shared.seen_patches import PartSeenChain, SeenPart
from engine.model.captions import pooled

ACROSS = 3  # of so many patches one is kept, or they become one row


class SpecVLMDrafter(PartSeenChain):
    key = "specvlm"
    title = "Picture made smaller, SpecVLM"
    summary = "A draft model sees a pruned or pooled picture or none, as a trained gate picks."
    needs = {**PartSeenChain.needs, "gate": "operator_gate"}
    feature_rows = 1

    @classmethod
    def build(cls, settings, models):
        made = super().build(settings, models)
        made._gate = models.part("gate")
        made.feature_layers = (models.target.layers - 1,)
        return made

    def look(self, start):
        if start.features is None or not len(start.features):
            return None
        self._chances = self._gate(start.features[-1:].float()).softmax(-1)[0].tolist()
        operator = OPERATORS[max(range(len(OPERATORS)), key=self._chances.__getitem__)]
        tokens, whole = self._whole.patch_tokens, self._whole
        if operator == OPERATORS[0]:
            return None
        if operator == OPERATORS[1]:
            kept = range(0, len(tokens), ACROSS + 1)
            weights = [float(place in kept) for place in range(len(tokens))]
            return SeenPart(
                whole.seeing(self._target.pixels), [tokens[place] for place in kept], weights
            )
        rows = pooled(whole.rows_of(self._target.pixels))
        weights = [1 / ACROSS] * len(tokens)
        return SeenPart(whole.with_rows(rows), tokens[: len(rows)], weights)

    def _show(self, tree):
        super()._show(tree)
        if self._target is not None:
            rows = list(zip(OPERATORS, self._chances, strict=True))
            tree.exhibits.append(
                Table("How the draft sees the picture", ("operator", "gate"), rows)
            )
