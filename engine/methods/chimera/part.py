"""Chimera's draft model: an encoder of trigrams at the bottom, an encoder of the whole text above it, and readouts.

Zeng et al., "Chimera: A Lossless Decoding Method for Accelerating Large Language Models Inference by Fusing all Tokens"
(2024). The *trigram encoder* makes one row (a vector) from the embeddings of a token and the two tokens before it. The
row depends on nothing else, so it is computed only once for each trigram. In the *full-context encoder*, one
Llama-style layer, this row attends to the target's own last states, which exist for all committed tokens but the last
one, and to the states that the encoder itself drafted for later tokens. The layer's output takes the place of the
target's state at the token. *Readout* k (from 0) predicts the token k places after the root: it maps the target's last
true state and the drafted state to an input of the target's head.

In the paper each readout is a matrix to the vocabulary that begins as two copies of the target's head. Here it is a map
to the head's input that begins as the mean of the two states, so the head is not stored again. There is no published
layout of safetensors (the authors' files are pickled); the names of the weights are those of this module.

Letters in shapes: S texts, R rows, T columns, H hidden size, D head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from engine.methods.shared.attention_layer import Attention, GatedMLP, rotary
from engine.methods.shared.head_ranks import HeadsPart
from engine.model.layers import final_norm

GRAM = 3
SMALL = 0.01
TRACE = 0.1
"""How large a trigram's row is at first, relative to a feature; a row of equal size would hide the target's state."""
MOST_HEADS = 64
Columns = tuple[Tensor, Tensor]
"""Keys and values, each [.., Hkv, T, D]."""


class TrigramEncoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(GRAM * width, GRAM * width)
        self.project = nn.Linear(GRAM * width, width, bias=False)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Map the embeddings [.., 3, H] of three consecutive tokens, in the order of the text, to the row [.., H] of
        their trigram."""
        rows = embeddings.flatten(-2)
        return self.project(rows + F.silu(self.linear(rows)))


class ContextEncoder(nn.Module):
    """One Llama-style layer, as wide as the target. A row attends to itself and to given states, of which the keys and
    values are computed by ``columns``."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, getattr(config, "rms_norm_eps", None) or 1e-6
        heads = config.num_attention_heads
        inner = getattr(config, "intermediate_size", None) or 4 * width
        rope = getattr(config, "rope_parameters", None) or {}
        self.theta = float(rope.get("rope_theta") or 10000.0)
        self.input_layernorm = nn.RMSNorm(width, eps=eps)
        self.self_attn = Attention(
            width,
            heads,
            getattr(config, "num_key_value_heads", None) or heads,
            getattr(config, "head_dim", None) or width // heads,
        )
        self.post_attention_layernorm = nn.RMSNorm(width, eps=eps)
        self.mlp = GatedMLP(width, inner)

    def columns(self, states: Tensor, places: Tensor) -> Columns:
        """Return the keys and values of states [.., R, H] at these positions [R] of the text."""
        return self.self_attn.keys_values(self.input_layernorm(states), *self._turn(places, states))

    def forward(
        self,
        rows: Tensor,
        places: Tensor,
        text: Columns,
        mask: Tensor | None = None,
        line: Sequence[Columns] = (),
    ) -> Tensor:
        """Map rows [.., R, H] at these positions [R] of the text to states [.., R, H].

        text: keys and values of the text's states, [.., Hkv, T, D]. mask: bool [R, T], to which of them each row
        attends; None means all. line: for each row, the keys and values of the drafted tokens before it, one at a time,
        [.., Hkv, R, D].
        """
        attention = self.self_attn
        queries = attention.queries(self.input_layernorm(rows), *self._turn(places, rows))
        queries = queries * attention.head_dim**-0.5
        groups = queries.shape[-3] // text[0].shape[-3]
        keys, values = (column.repeat_interleave(groups, -3) for column in text)
        own = [
            tuple(column.repeat_interleave(groups, -3) for column in pair)
            for pair in (*line, self.columns(rows, places))
        ]
        scores = queries @ keys.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        mine = [(queries * key).sum(-1, keepdim=True) for key, _ in own]
        weights = torch.cat([scores, *mine], -1).softmax(-1)
        count = keys.shape[-2]
        mixed = weights[..., :count] @ values
        for at, (_, value) in enumerate(own, start=count):
            mixed = mixed + weights[..., at, None] * value
        rows = rows + attention.joined(mixed)
        return rows + self.mlp(self.post_attention_layernorm(rows))

    def _turn(self, places: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        return rotary(places, self.self_attn.head_dim, self.theta, like.dtype)


class ChimeraHeads(HeadsPart):
    key, noun = "chimera_heads", "set of Chimera heads"

    def __init__(self, config: PreTrainedConfig, heads: int) -> None:
        """config: the target's configuration, from which the sizes are taken. heads: the number of readouts."""
        super().__init__(heads)
        width = config.hidden_size
        self.trigram = TrigramEncoder(width)
        self.encoder = ContextEncoder(config)
        self.readouts = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(heads))

    @classmethod
    def of_files(cls, config, tensors, target):
        heads = sum(name.startswith("readouts.") for name in tensors)
        if not 0 < heads <= MOST_HEADS:
            raise ValueError("its weights have other names")
        return cls(target.model.config.get_text_config(decoder=True), heads)

    @classmethod
    @torch.no_grad()
    def beginning(cls, target: PreTrainedModel, heads: int = 2) -> ChimeraHeads:
        """Return untrained heads. The full-context encoder attends as the target's last layer does and adds nothing,
        the row of a trigram is a small multiple of its last token's embedding, and a readout is the mean of the true
        and the drafted state."""
        heads_part = cls(target.config.get_text_config(decoder=True), heads)
        final = getattr(final_norm(target), "weight", torch.ones(1))
        feature, embedding = (
            weights.float().square().mean().sqrt()
            for weights in (final, target.get_input_embeddings().weight)
        )
        heads_part.trigram.linear.weight.zero_()
        heads_part.trigram.linear.bias.zero_()
        project = heads_part.trigram.project.weight
        width = len(project)
        project.normal_(std=SMALL / width**0.5)
        project[:, -width:] += torch.eye(width) * TRACE * feature / embedding
        layers = getattr(target.base_model, "layers", None)
        theirs = dict(layers[-1].named_parameters()) if layers is not None else {}
        for name, mine in heads_part.encoder.named_parameters():
            weight = theirs.get(name)
            if weight is not None and weight.shape == mine.shape:
                mine.copy_(weight)
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                mine.zero_()
        for readout in heads_part.readouts:
            readout.weight.copy_(torch.eye(width).repeat(1, 2) / 2)
        return heads_part

    def spoken(self, head: int, true: Tensor, drafted: Tensor) -> Tensor:
        """Return the input of the target's head, by readout ``head``, from the target's last true state and a drafted
        state, [.., H] each."""
        return self.readouts[head](torch.cat([true, drafted], -1))

    def fields(self):
        return {"architectures": ["ChimeraHeads"], "model_type": "chimera"}


KIND = ChimeraHeads.kind()
