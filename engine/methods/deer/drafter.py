"""DEER: a separate diffusion language model drafts a long block in one denoising step.

Cheng et al., "DEER: Draft with Diffusion, Verify with Autoregressive Models" (2025). The drafter reads only the text,
no states of the target. All positions of a block are filled in one pass, so no guess rests on an earlier guess, and a
long block costs as many passes as a short one. Given the text, the positions are independent, so the q at each position
is the true law of its token.
"""

from engine.core.drafter import Drafter
from engine.core.exhibits import Curve, Series
from engine.core.finite import refuse_nan
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.core.tree import ROOT, DraftTree
from engine.methods.deer.part import ReadText, tensor_of


class DeerDrafter(Drafter):
    key = "deer"
    title = "Diffusion language model, DEER"
    family, shape = "diffusion", "chain"
    summary = "A diffusion language model of its own reads the text and fills a long block at once."
    draw_kinds = ("iid",)
    needs = {"deer": "diffusion_lm"}
    options = (whole("length", 16, 1, 63, "Length").meaning("Tokens drafted in each step."),)
    trial = {"length": 2}

    def __init__(self, settings, model, device) -> None:
        super().__init__(settings)
        self.model, self._device = model, device
        self.max_context = model.config.max_position_embeddings

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("deer"), models.target.device)

    def begin(self, start):
        super().begin(start)
        self._passes = 0
        self._read = ReadText(self.model)
        self._read.read(tensor_of(start.prompt[:-1], self._device))

    def propose(self, context, max_depth):
        laws = self._laws(context, min(self.settings["length"], max_depth))
        if self.sampling.greedy:
            kind, tokens = "one_hot", laws.argmax(-1)
        else:
            kind, tokens = "iid", self.chance.pick(laws, self.chance.uniforms(len(laws)))
        tree, parent = DraftTree(), ROOT
        for place, token in enumerate(tokens.tolist()):
            parent = tree.draw(parent, token, kind, laws[place], f"block {place + 1}")
        return tree

    def _laws(self, context, length: int):
        """Return the laws [length, V] of the next ``length`` positions, on the host."""
        fresh = tensor_of(context[self._read.length :], self._device)
        logits = self._read.fill(fresh, min(length, self.model.config.block_size))
        self._passes += 1
        refuse_nan(logits, "The diffusion language model")
        return display_distribution(logits, self.sampling).cpu()

    def observe(self, kept):
        if len(kept.tree):
            kept.tree.exhibits.append(self._curve(kept))

    def _curve(self, kept) -> Curve:
        """Show how sure the model was at each position, and how many tokens of the block were kept."""
        laws = [kept.tree.shown_law(place) for place in range(-1, len(kept.tree) - 1)]
        sure = [float(law.max()) for law in laws]
        return Curve(
            "Confidence along the block",
            list(range(1, len(sure) + 1)),
            [Series("likeliest token", sure), Series("drafted token", list(kept.tree.q))],
            x_label="place of the block",
            y_label="q",
            mark=len(kept.path),
            note=f"One denoising step; {len(kept.path)} of {len(sure)} places were kept (the mark).",
        )

    def passes(self):
        return {"deer": self._passes}
