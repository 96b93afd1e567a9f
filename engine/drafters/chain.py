"""A draft model writes the next few tokens, one after another.

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

import torch

from engine.drafters.base import Drafter
from engine.drafters.draft_model import DraftReader
from engine.options import Option
from engine.tree import ROOT, DraftTree


class ChainDrafter(Drafter):
    key = "chain"
    family = "chain"
    summary = "A small draft model writes a few tokens ahead, one after another."
    needs = frozenset({"draft"})
    options = (Option("length", "int", 4, "Tokens drafted in each step.", 1, 32),)

    def __init__(self, settings, draft, vocabulary: int) -> None:
        super().__init__(settings)
        self._draft = draft
        self.max_context = draft.max_context
        self._vocabulary = vocabulary

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.draft, models.target.vocab_size)

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot" if sampling.greedy else "iid"})

    def begin(self, prompt, sampling, generator, features):
        super().begin(prompt, sampling, generator, features)
        self._reader = DraftReader(self._draft, self._vocabulary, sampling)

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

    def observe(self, kept):
        self._reader.keep(kept.path)
