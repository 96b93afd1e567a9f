"""One recurrent cell drafts token after token; it starts from the output of a transformer block over the whole text.

Xiao et al., Clover: Regressive Lightweight Speculative Decoding with Sequential Knowledge (2024). The tree is Medusa's.
Along each branch the hidden state goes from head to head, and each head adds the last drafted token to it.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from engine.methods.shared.heads import HeadsDrafter


class CloverDrafter(HeadsDrafter):
    key = "clover"
    title = "Clover's regressive heads"
    summary = "A recurrent cell on the target's states passes its own state from token to token."
    needs = {"clover": "clover_heads"}
    note = "Each row shows the cell's choices after the tokens that were kept before that position."

    def begin(self, start):
        self._cache = DynamicCache()
        self._following = list(start.prompt[1:])
        self._unread: list[int] = []
        super().begin(start)

    def propose(self, context, max_depth):
        self._unread = list(context[self._read :])
        return super().propose(context, max_depth)

    def observe(self, kept):
        self._following = [
            *self._unread[1:],
            *kept.tokens,
        ]  # forced tokens of a schema stand before the kept ones
        super().observe(kept)

    @torch.no_grad()
    def _keep(self, features):
        if len(features) > len(self._following):
            return  # the text has ended: the last state has no token after it
        if len(features):
            following = self._embedded(self._following[: len(features)])
            features = self.heads.states(features[None], following[None], self._cache)[0]
        super()._keep(features)
        self._hidden: dict[tuple[int, ...], Tensor] = {(): self._state}

    def _after(self, head, paths, count):
        drafted = [tuple(path[1:]) for path in paths]  # the state knows the root already
        hidden = self._hidden_behind(drafted)
        last = self._embedded([path[-1] for path in drafted]) if head else None
        return self._choices(self.heads.spoken(hidden, last), self.target.head, count)

    def _hidden_behind(self, drafted: Sequence[tuple[int, ...]]) -> Tensor:
        """Return the hidden states [R, H] after these drafted tokens; each is computed once, from the state before
        it."""
        for length in range(1, len(drafted[0]) + 1):
            begun = dict.fromkeys(path[:length] for path in drafted)
            fresh = [path for path in begun if path not in self._hidden]
            if fresh:
                before = torch.stack([self._hidden[path[:-1]] for path in fresh])
                new_states = self.heads.next(before, self._embedded([path[-1] for path in fresh]))
                self._hidden |= dict(zip(fresh, new_states, strict=True))
        return torch.stack([self._hidden[path] for path in drafted])

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        """Return the embeddings [R, H] of R tokens."""
        rows = self.target.model.get_output_embeddings().weight
        return F.embedding(torch.tensor(tokens, device=rows.device), rows)
