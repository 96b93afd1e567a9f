"""The pieces of a Llama-style layer, under the names that published checkpoints give them.

Letters in shapes: R rows (one row per token), H hidden size, D head size, Hq query heads, Hkv key/value heads.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedConfig
from transformers.activations import ACT2FN

KeyValue = tuple[Tensor, Tensor]
"""Keys and values, both [.., Hkv, R, D]; the keys are already normalised and rotated."""
Turn = tuple[Tensor, Tensor]
"""cos and sin of the rotary angles, both [.., R, D]."""
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention as a function: (queries [.., Hq, R, D], keys and values [.., Hkv, R, D] of the same rows) -> [.., Hq, R,
D]. The function decides by itself which cached rows these rows also attend to."""


def rotary(positions: Tensor, head_dim: int, theta: float, dtype: torch.dtype) -> Turn:
    """The rotary cos and sin of these positions, both of shape positions.shape + [D]. As in Llama, dimension i of a
    head is rotated together with dimension i + D/2."""
    inverse = theta ** (
        -torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim
    )
    angles = positions.float()[..., None] * inverse
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate queries or keys x [..., heads, rows, D] by cos and sin [..., rows, D]; returns the shape of x."""
    first, second = x.chunk(2, dim=-1)
    return x * cos.unsqueeze(-3) + torch.cat([-second, first], dim=-1) * sin.unsqueeze(-3)


class Attention(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        *,
        into: int | None = None,
        bias: bool = False,
        output_bias: bool = False,
        norm_eps: float | None = None,
    ) -> None:
        """width: the size of an input row. into: the size of an output row; None: as the input row. norm_eps: the
        epsilon of the norms on queries and keys; None: no norms."""
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(width, heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(heads * head_dim, into or width, bias=output_bias)
        if norm_eps is None:
            self.q_norm = self.k_norm = nn.Identity()
        else:
            self.q_norm = nn.RMSNorm(head_dim, eps=norm_eps)
            self.k_norm = nn.RMSNorm(head_dim, eps=norm_eps)

    def forward(self, rows: Tensor, turn: Turn, attend: Attend) -> Tensor:
        """The attention block: rows [.., R, H] -> rows [.., R, H]."""
        return self.joined(attend(self.queries(rows, *turn), *self.keys_values(rows, *turn)))

    def queries(self, rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The rotated queries: rows [.., R, H] -> [.., Hq, R, D]."""
        return rotate(self.q_norm(self._heads(self.q_proj(rows))), cos, sin)

    def keys_values(self, rows: Tensor, cos: Tensor, sin: Tensor) -> KeyValue:
        """Rotated keys, and values: rows [.., R, H] -> two tensors [.., Hkv, R, D]."""
        keys = rotate(self.k_norm(self._heads(self.k_proj(rows))), cos, sin)
        return keys, self._heads(self.v_proj(rows))

    def joined(self, heads: Tensor) -> Tensor:
        """Concatenate the heads and apply the output projection: [.., Hq, R, D] -> rows [.., R, H]."""
        return self.o_proj(heads.transpose(-2, -3).flatten(-2))

    def _heads(self, x: Tensor) -> Tensor:
        """Split rows into heads: [.., R, heads * D] -> [.., heads, R, D]."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(-2, -3)


class GatedMLP(nn.Module):
    def __init__(self, width: int, inner: int, act: str = "silu") -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)
        self.act = ACT2FN[act]

    def forward(self, rows: Tensor) -> Tensor:
        return self.down_proj(self.act(self.gate_proj(rows)) * self.up_proj(rows))


def decoder_like(config: PreTrainedConfig, layers: int) -> nn.Module:
    """A decoder of the config's architecture with ``layers`` layers and a final norm. It has no embedding table,
    because its inputs are hidden states."""
    config = copy.deepcopy(config)
    config.num_hidden_layers, config.vocab_size, config.pad_token_id = layers, 1, None
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1] * layers
    config._attn_implementation = "sdpa"
    decoder = AutoModel.from_config(config)
    decoder.set_input_embeddings(nn.Identity())
    return decoder
