"""A Llama as functions of flat tensors, written for training on a CPU: few large products, the rest fused by
`torch.compile`. Its parameters lie in one vector under Hugging Face's names, so that a state dict is a set of views.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig

from engine.training.products import product

QUERY_BLOCK = 128  # attention runs block by block; scores of keys after a block are never computed


@dataclass(frozen=True)
class Shape:
    """The values of a config that the functions need."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    eps: float
    theta: float

    @classmethod
    def of(cls, config: LlamaConfig) -> Shape:
        c = config
        return cls(
            c.num_hidden_layers, c.hidden_size, c.intermediate_size, c.num_attention_heads, c.num_key_value_heads,
            c.head_dim, c.vocab_size, c.rms_norm_eps, c.rope_parameters["rope_theta"],
        )  # fmt: skip

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Hugging Face's name -> shape, in the order of the vector. Projections of the same input are neighbours, so
        that together they are also one matrix."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        of_layer = {
            "input_layernorm": (self.hidden,),
            "self_attn.q_proj": (query, self.hidden),
            "self_attn.k_proj": (key, self.hidden),
            "self_attn.v_proj": (key, self.hidden),
            "self_attn.o_proj": (self.hidden, query),
            "post_attention_layernorm": (self.hidden,),
            "mlp.gate_proj": (self.intermediate, self.hidden),
            "mlp.up_proj": (self.intermediate, self.hidden),
            "mlp.down_proj": (self.hidden, self.intermediate),
        }
        return {
            "model.embed_tokens.weight": (self.vocabulary, self.hidden),
            "model.norm.weight": (self.hidden,),
            **{
                f"model.layers.{i}.{name}.weight": shape
                for i in range(self.layers)
                for name, shape in of_layer.items()
            },
        }

    def size(self) -> int:
        return sum(map(math.prod, self.parameters().values()))

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The vector as named tensors."""
        sizes = self.parameters()
        parts = flat.split([math.prod(s) for s in sizes.values()])
        return {n: p.view(s) for (n, s), p in zip(sizes.items(), parts, strict=True)}

    def leaves(self, flat: Tensor) -> list[Tensor]:
        """The vector as the tensors of the functions: embedding, final norm, and six of each layer."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        of_layer = [
            (self.hidden,),
            (query + 2 * key, self.hidden),
            (self.hidden, query),
            (self.hidden,),
            (2 * self.intermediate, self.hidden),
            (self.hidden, self.intermediate),
        ]
        shapes = [(self.vocabulary, self.hidden), (self.hidden,), *of_layer * self.layers]
        parts = flat.split([math.prod(s) for s in shapes])
        return [p.view(s) for p, s in zip(parts, shapes, strict=True)]


def rotation(shape: Shape, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, head_dim / 2]."""
    inverse = shape.theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
    angles = torch.arange(length)[:, None] * inverse
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _attend(q: Tensor, k: Tensor, v: Tensor, first: int) -> Tensor:
    """q [B, heads, n, D] at places first, first + 1, ...; k and v [B, kv_heads, first + n, D]."""
    batch, heads, n, width = q.shape
    groups, kept = k.shape[1], k.shape[2]
    q = q.reshape(batch * groups, heads // groups * n, width)
    k, v = (x.reshape(batch * groups, kept, width) for x in (k, v))
    scores = torch.bmm(q, k.mT).view(batch * groups, heads // groups, n, kept).float()
    seen = torch.arange(first, first + n)[:, None] >= torch.arange(kept)
    scores = torch.where(seen, scores * width**-0.5, float("-inf"))
    weights = torch.softmax(scores, -1).to(v.dtype).view(batch * groups, -1, kept)
    return torch.bmm(weights, v).view(batch, heads, n, width)


def layer(x: Tensor, weights: list[Tensor], cos: Tensor, sin: Tensor, shape: Shape) -> Tensor:
    """x [B, T, H] -> the same."""
    norm1, into_heads, out_of_heads, norm2, gate_up, down = weights
    batch, length, hidden = x.shape
    h = F.rms_norm(x, (hidden,), norm1, shape.eps)
    heads = product(h, into_heads.T).view(batch, length, -1, shape.head_dim).transpose(1, 2)
    q, k, v = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), 1)
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    if x.dtype == torch.float16:  # batched products are no faster in fp16
        q, k, v = q.float(), k.float(), v.float()
    blocks = [
        _attend(q[:, :, i : i + QUERY_BLOCK], k[:, :, : i + QUERY_BLOCK], v[:, :, : i + QUERY_BLOCK], i)
        for i in range(0, length, QUERY_BLOCK)
    ]  # fmt: skip
    mixed = torch.cat(blocks, 2).transpose(1, 2).reshape(batch, length, -1).to(x.dtype)
    x = x + product(mixed, out_of_heads.T)
    h = F.rms_norm(x, (hidden,), norm2, shape.eps)
    gate, up = product(h, gate_up.T).chunk(2, -1)
    return x + product(F.silu(gate) * up, down.T)


def hidden_states(
    leaves: list[Tensor], tokens: Tensor, cos: Tensor, sin: Tensor, shape: Shape, layer=layer
) -> Tensor:
    """tokens [B, T] -> [B, T, H], after the final norm."""
    embedding, norm, *rest = leaves
    x = F.embedding(tokens, embedding)
    for i in range(0, len(rest), 6):
        x = layer(x, rest[i : i + 6], cos, sin, shape)
    return F.rms_norm(x, (shape.hidden,), norm, shape.eps)
