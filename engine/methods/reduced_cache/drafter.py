"""The target writes from a part of its own keys and values, and nothing checks it: lossy.

Methods that choose keys and values (*selectors*) were invented for this use. The method ``engine.methods.own_cache``
uses the same selectors only for drafting, where they lose nothing. Li et al., SnapKV (NeurIPS 2024); Galim et al.,
Draft-based Approximate Inference for LLMs (SpecKV, ICLR 2026); Zhu et al., SentenceKV (COLM 2025); Yang et al., LServe
(MLSys 2025); Lu et al., LongHeads (2024); and others. The prompt is computed with all keys and values, up to its last
token. From the last token of the prompt on, every token attends only to the keys and values that the selector chooses.
So the keys and values of the new tokens, to which later tokens may attend, are not those of plain decoding.
"""

from engine.core.sampling import display_distribution, likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.part_of_cache import CachePartDrafter, part_options


class ReducedCacheDrafter(CachePartDrafter):
    key = "reduced_cache"
    title = "A part of the cache, unchecked"
    family, shape = "self", "chain"
    summary = "The target writes from a part of its keys and values, unchecked: lossy."
    draw_kinds = ("unseen",)
    loop = "switching"
    reader, rest = "a token", "What is left out is missing from the answer."
    options = part_options(reader)
    trial = {"selector": "streaming", "budget": 3, "sinks": 1}

    def propose(self, context, max_depth):
        tree = DraftTree()
        if self.view is None:
            return tree
        self.turn_to(context)
        q = display_distribution(self.read(context[-1:]), self.sampling)[0].cpu()
        if self.sampling.greedy:
            kind, token = "one_hot", likeliest(q)
        else:
            kind, token = "iid", self.chance.draw(q)
        tree.draw(ROOT, token, kind, q, "part of the cache")
        tree.exhibits += self.shown
        return tree

    def observe(self, kept):
        if self.view is not None:
            self.start.target.take_in(self.view.columns)
            self.learn(1)
