"""A block filled in several denoising passes: sure words first, the others in the light of them.

Dimple's confident decoding (Yu et al., "Dimple: Discrete Diffusion Multimodal Large Language Model with
Parallel Decoding", 2025), here as the unmasking policy of a block-diffusion drafter.
"""

from engine.drafters.dflash import DiffusionDrafter
from engine.exhibits import Table, Token
from engine.options import Option
from engine.policies.unmasking import Canvas, Confident
from engine.tree import DraftTree


class DimpleDrafter(DiffusionDrafter):
    key = "dimple"
    title = "Block diffusion in passes, Dimple"
    summary = "A diffusion drafter fills the words it is sure of, and looks again at the others."
    options = (
        Option("length", "int", 7, "Tokens drafted in each step.", 1, 31, label="Length"),
        Option(
            "threshold",
            "float",
            0.9,
            "A place is filled once its likeliest token has this probability.",
            0.0,
            1.0,
            label="Confidence",
        ),
        Option("passes", "int", 3, "Most denoising passes in a step.", 1, 16, label="Passes"),
    )
    trial = {"length": 2, "passes": 2}

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def propose(self, context, max_depth):
        canvas = Canvas(self._length(max_depth))
        policy = Confident(self.settings["threshold"], self.settings["passes"] - 1)
        while canvas.open:
            probabilities = self._reader.marginals(
                context[-1], canvas.length, self.sampling, canvas.tokens
            )
            canvas.fill(probabilities.cpu(), policy.choose(probabilities, canvas))
        tree = DraftTree()
        fills = [canvas.filled[place] for place in range(canvas.length)]
        parent = -1
        for fill in fills:
            source = f"pass {fill.turn + 1}"
            parent = tree.draw(parent, fill.token, source=source, q=fill.confidence)
        rows = [
            [fill.place + 1, Token(fill.token), fill.turn + 1, fill.confidence] for fill in fills
        ]
        columns = ["place", "token", "filled in pass", "confidence"]
        tree.exhibits.append(Table(title="Order of filling", columns=columns, rows=rows))
        return tree
