"""The target drafts for itself on a part of its own keys and values, and checks the draft with all of them.

Chen et al., MagicDec: Breaking the Latency-Throughput Tradeoff for Long Context Generation with Speculative Decoding
(ICLR 2025). With long texts, or many of them, a pass spends its time on keys and values and not on weights. So a draft
pass with the same weights that attends to only a part of the keys and values costs less, and its predictions are almost
as good. Methods that leave out keys and values change a model's answer. Here such a method is used only while drafting,
so under an exact rule it changes only how many tokens are kept.

On one text of a small model the weights take nearly all of the time, so nothing is gained.
"""

from collections.abc import Sequence

from engine.core.options import whole
from engine.core.sampling import display_distribution, likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.part_of_cache import CachePartDrafter, part_options


class OwnCacheDrafter(CachePartDrafter):
    key = "own_cache"
    title = "A part of its own cache, MagicDec"
    family, shape = "self", "chain"
    summary = "The target drafts for itself on a part of its keys and values."
    draw_kinds = ("iid",)
    reader, rest = "a draft pass", "The target reads all of it."
    options = (
        whole("length", 4, 1, 32, "Length").meaning("Tokens drafted in a step."),
        *part_options(reader),
    )
    trial = {"length": 2, "selector": "streaming", "budget": 3, "sinks": 1}

    def begin(self, start):
        super().begin(start)
        self._forced = 0

    def propose(self, context, max_depth):
        tree = DraftTree()
        if self.view is None:
            return tree
        self.turn_to(context)
        rows = context[self.start.target.length :]
        self._forced = len(rows) - 1
        self._chain(tree, rows, min(self.settings["length"], max_depth))
        tree.exhibits += self.shown
        return tree

    def _chain(self, tree: DraftTree, rows: Sequence[int], length: int) -> None:
        parent = ROOT
        while len(tree) < length:
            q = display_distribution(self.read(rows)[-1:], self.sampling)[0].cpu()
            if self.sampling.greedy:
                kind, token = "one_hot", likeliest(q)
            else:
                kind, token = "iid", self.chance.draw(q)
            parent, rows = tree.draw(parent, token, kind, q, "own cache"), [token]

    def observe(self, kept):
        if self.view is not None:
            self.learn(1 + self._forced + len(kept.path))
