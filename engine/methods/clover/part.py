"""Clover's heads: a small recurrent cell drafts one token after another, from the output of a block that attends to the
whole text.

Xiao et al., Clover: Regressive Lightweight Speculative Decoding with Sequential Knowledge (2024), with the order and
the projections of Clover-2 (2024). For each token over which the target has run, an attention decoder combines the
target's last state, after the final norm, with the embedding of the next token. The augmenting block, layers of the
target's kind, runs over the rows that the decoder returns. The block's output at position t depends on the tokens up to
t + 1. From the block's output at position t, head 0 predicts the token at t + 2. Every further head is the same cell:
it combines the hidden state of the head before it (the regressive connection) with the embedding of the token that the
head before it drafted.

The attention decoder combines a row x with an embedding y. It attends to y alone, so its weight is not a softmax over
several keys but a cosine: in each attention head it computes x + v(y) * cos(q(norm(x)), k(y)). All logits come from the
target's head, and the rows of that head serve as the embeddings, as in the paper's code.

Letters in shapes: S texts, R rows, H hidden size, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Cache, PreTrainedConfig, PreTrainedModel

from engine.errors import UserError
from engine.methods.shared.attention_layer import decoder_like
from engine.methods.shared.head_ranks import FIELD, HeadsPart
from engine.model.layers import final_norm

SMALL = 0.01
USUAL_HEADS = 5  # as in the paper's code; the cell itself fixes no number


class AttentionDecoder(nn.Module):
    """Adds to a row x the value of a token's embedding y, weighted by how well the row's query and the embedding's key
    agree."""

    def __init__(self, width: int, heads: int, eps: float) -> None:
        super().__init__()
        self.heads, self.eps = heads, eps
        self.norm = nn.RMSNorm(width, eps=eps)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the new rows [..., H]. x, y: rows and embeddings, [..., H] each."""
        q, k, v = (
            rows.unflatten(-1, (self.heads, -1))
            for rows in (self.q(self.norm(x)), self.k(y), self.v(y))
        )
        agreement = F.cosine_similarity(q, k, dim=-1, eps=self.eps)
        return x + (v * agreement[..., None]).flatten(-2)

    def begin(self) -> None:
        """Set the weights so that queries and keys nearly equal the vectors from which they are made, and values are
        small."""
        for linear in (self.q, self.k, self.v):
            linear.weight.uniform_(0, SMALL)
            linear.bias.zero_()
        for linear in (self.q, self.k):
            linear.weight += torch.eye(len(linear.weight))


class CloverHeads(HeadsPart):
    """The weights of Clover. The number of heads is the number of tokens drafted; all heads share one cell."""

    key, noun = "clover_heads", "set of Clover heads"

    def __init__(self, config: PreTrainedConfig, layers: int, heads: int = USUAL_HEADS) -> None:
        """config: the target's configuration. layers: the number of layers of the augmenting block. Raises ValueError
        if the target's width is not a multiple of its attention heads, or its layers are not of Llama's kind."""
        super().__init__(heads)
        width, count = config.hidden_size, config.num_attention_heads
        eps = getattr(config, "rms_norm_eps", None) or 1e-6
        if width % count:
            raise ValueError(f"its {count} attention heads do not divide a width of {width}")
        self.extract = AttentionDecoder(width, count, eps)
        self.augmenting = decoder_like(config, layers)
        if not hasattr(self.augmenting, "layers"):
            raise ValueError(f"layers of the kind {config.model_type} are not supported")
        self.first = nn.Linear(width, width)
        self.decoder = AttentionDecoder(width, count, eps)
        self.later = nn.Linear(2 * width, width)
        self.head_norm = nn.RMSNorm(width, eps=eps)

    @classmethod
    def of_files(cls, config, tensors, target):
        numbers = {name.split(".")[2] for name in tensors if name.startswith("augmenting.layers.")}
        if not 0 < len(numbers) <= 64:
            raise ValueError("its weights have other names")
        rows = config.get(FIELD)
        heads = len(rows) if isinstance(rows, list) and rows else USUAL_HEADS
        return cls(target.model.config.get_text_config(decoder=True), len(numbers), heads)

    @classmethod
    @torch.no_grad()
    def beginning(cls, target: PreTrainedModel, heads: int = 2, layers: int = 1) -> CloverHeads:
        """Return untrained heads that repeat the target's state: the augmenting block adds nothing, and the attention
        decoders add almost nothing. Raises UserError for a target that Clover does not fit."""
        config = target.config.get_text_config(decoder=True)
        try:
            heads_part = cls(config, layers, heads)
        except ValueError as error:
            raise UserError(f"Clover does not fit this target: {error}.") from None
        width = config.hidden_size
        for name, weight in heads_part.augmenting.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                weight.zero_()  # so attention and MLP add nothing to the rows
        for decoder in (heads_part.extract, heads_part.decoder):
            decoder.begin()
        for linear in (heads_part.first, heads_part.later):
            linear.weight.uniform_(0, SMALL)
            linear.weight[:, :width] += torch.eye(width)
            linear.bias.zero_()
        final = getattr(final_norm(target), "weight", torch.ones(1))
        heads_part.head_norm.weight.fill_(final.square().mean().sqrt())
        return heads_part

    def states(self, features: Tensor, following: Tensor, cache: Cache | None = None) -> Tensor:
        """Map the target's features [S, R, H] and the embeddings [S, R, H] of the tokens after them to the block's rows
        [S, R, H].

        cache: the keys and values of earlier rows in the augmenting block; the keys and values of the new rows are
        added to it.
        """
        rows = self.extract(features, following)
        output = self.augmenting(
            inputs_embeds=rows, past_key_values=cache, use_cache=cache is not None
        )
        return output.last_hidden_state

    def next(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """Return the hidden state [..., H] of the next head. hidden: the hidden state of the head before it. embedding:
        the embedding of the token that the head before it drafted."""
        return self.decoder(hidden, embedding)

    def spoken(self, hidden: Tensor, embedding: Tensor | None = None) -> Tensor:
        """Return the state that the target's head turns into logits. embedding: the embedding of the token drafted
        last; None for head 0."""
        if embedding is None:
            return self.head_norm(self.first(hidden))
        return self.head_norm(self.later(torch.cat([hidden, embedding], -1)))

    def fields(self):
        return {
            "architectures": ["CloverHeads"],
            "model_type": "clover",
            "num_layers": len(self.augmenting.layers),
        }


KIND = CloverHeads.kind()
