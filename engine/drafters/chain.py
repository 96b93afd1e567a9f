"""A draft model writes the next few tokens, one after another.

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

import torch

from engine.drafters.draft_model import DraftModelDrafter
from engine.options import Option
from engine.tree import ROOT, DraftTree


class ChainDrafter(DraftModelDrafter):
    key = "chain"
    family = "chain"
    summary = "A small draft model writes a few tokens ahead, one after another."
    options = (Option("length", "int", 4, "Tokens drafted in each step.", 1, 32),)

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        length = min(self.settings["length"], max_depth)
        q = self._reader.read(context)
        for depth in range(1, length + 1):
            parent = tree.child(parent, *self._pick(q), "draft model", q)
            if depth < length:
                q = self._reader.expand([parent], tree.tokens[-1:], tree.parents[-1:])[0]
        return tree

    def _pick(self, q):
        if self.sampling.greedy:
            return "one_hot", int(q.argmax())
        return "iid", int(torch.multinomial(q, 1, generator=self.generator))
