"""Heads that read the tokens drafted before their own, in a fixed tree.

Ankner et al., Hydra: Sequentially-Dependent Draft Heads for Medusa Decoding (2024). The tree is Medusa's. What a head
predicts depends on the branch, so on each level of the tree the head of this level is run once for every branch.
"""

import torch
from transformers import DynamicCache

from engine.methods.shared.heads import HeadsDrafter


class HydraDrafter(HeadsDrafter):
    key = "hydra"
    title = "Hydra heads"
    summary = (
        "Heads on the target's last state, each of which reads the tokens drafted before its own."
    )
    needs = {"hydra": "hydra_heads"}
    note = "Each row shows a head's choices after the tokens that were kept before its position."

    def __init__(self, settings, heads, target):
        super().__init__(settings, heads, target)
        self.feature_layers = (target.layers - heads.offset,)

    def begin(self, start):
        self._cache = DynamicCache()
        super().begin(start)

    @torch.no_grad()
    def _keep(self, features):
        if len(features):
            features = self.heads.states(features[None], self._cache)[0]
        super()._keep(features)

    def _after(self, head, paths, count):
        readable = [self.target.readable(path) for path in paths]
        tokens = torch.tensor(readable, device=self.target.device)
        embeddings = self.target.embed(tokens)
        hidden = self.heads.hidden(head, self._state.expand(len(paths), -1), embeddings)
        own = self.target.head if self.heads.shares_head else self.heads.lm_head[head]
        return self._choices(hidden, own, count)
