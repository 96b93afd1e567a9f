"""A lean forward of the Llama-class block, over the weights of the transformers module.

Llama, Mistral, Qwen2 and Qwen3 are one block: norm, rotary attention (perhaps with biases, with
norms on q and k, with a window), norm, gated MLP. On a CPU most of what transformers spends on
a few rows is overhead, so here the same block is written out plainly.

What makes it fast: q, k and v come out of one product, gate and up out of another; activations
lie feature by feature ([features, rows]), for ``W @ x`` leaves the weights as they lie where
``x @ W.T`` repacks them at every call; rows of the q heads that share a k head are read as one;
keys and values are written straight into the cache. No weight exists twice: the module's
parameters become views of the fused ones.

Letters in shapes: R rows, T columns, V vocabulary, W hidden size, D head size, Hq and Hkv heads,
G = Hq / Hkv.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    LlamaForCausalLM,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)

from engine.fused import fuse
from engine.lean_cache import LeanCache
from engine.rotary import RotaryTable
from engine.row_mask import RowMask

CLASSES = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


def fits(model: PreTrainedModel) -> bool:
    """Whether this module is of the class: on the CPU, plain linear layers, a SiLU gate."""
    if type(model) not in CLASSES or model.device.type != "cpu":
        return False
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    plain = all(type(module) is nn.Linear for module in linear)
    per_layer = 7  # q, k, v, o, gate, up, down
    complete = len(linear) == per_layer * len(model.model.layers) + 1
    same_dtype = len({parameter.dtype for parameter in model.parameters()}) == 1
    return plain and complete and same_dtype and model.config.hidden_act == "silu"


class _Norm:
    """RMS norm. F.rms_norm takes seven small kernels a call; ``columns`` takes five."""

    def __init__(self, module: nn.Module) -> None:
        self.weight, self.epsilon = module.weight.data, module.variance_epsilon
        self._column = self.weight[:, None]
        self._mean = self.weight.new_full((1, len(self.weight)), 1 / len(self.weight))
        self._floor = self.weight.new_full((1, 1), self.epsilon)

    def rows(self, x: Tensor) -> Tensor:
        """[..., width] normed over the last dimension."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)

    def columns(self, x: Tensor) -> Tensor:
        """[W, R] -> [W, R], each column normed."""
        if x.dtype != torch.float32:  # squares want fp32, which F.rms_norm sees to
            return self.rows(x.t()).t().contiguous()
        scale = torch.addmm(self._floor, self._mean, x * x).rsqrt_()
        return (x * scale).mul_(self._column)


@dataclass(frozen=True)
class _Projection:
    """weight [out, in]; bias [out, 1] or None."""

    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, *modules: nn.Linear) -> "_Projection":
        weight, bias = fuse(modules)
        return cls(weight, None if bias is None else bias[:, None])

    def __call__(self, x: Tensor) -> Tensor:
        """[in, R] -> [out, R]"""
        if self.bias is None:
            return torch.mm(self.weight, x)
        return torch.addmm(self.bias, self.weight, x)

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """hidden [out, R] += this of x [in, R]"""
        hidden.addmm_(self.weight, x)
        if self.bias is not None:
            hidden.add_(self.bias)


class _Layer:
    """One block's weights, named as they are used."""

    def __init__(self, module: nn.Module) -> None:
        attention, mlp = module.self_attn, module.mlp
        self.before_attention = _Norm(module.input_layernorm)
        self.qkv = _Projection.of(attention.q_proj, attention.k_proj, attention.v_proj)
        normed = hasattr(attention, "q_norm")
        self.q_norm = _Norm(attention.q_norm) if normed else None
        self.k_norm = _Norm(attention.k_norm) if normed else None
        self.out = _Projection.of(attention.o_proj)
        self.before_mlp = _Norm(module.post_attention_layernorm)
        self.gate_up = _Projection.of(mlp.gate_proj, mlp.up_proj)
        self.down = _Projection.of(mlp.down_proj)
        self.width = mlp.gate_proj.out_features
        self.scaling = attention.scaling
        self.window = _window(attention)


def _window(attention: nn.Module) -> int | None:
    """The sliding window of a layer: Qwen keeps one a layer, Mistral one for all."""
    if hasattr(attention, "sliding_window"):
        return attention.sliding_window
    if isinstance(attention.config, MistralForCausalLM.config_class):
        return attention.config.sliding_window
    return None


class LeanLlama:
    """The forward of one module of the class. Building it moves the module's weights."""

    def __init__(self, model: PreTrainedModel) -> None:
        decoder = model.model
        attention = decoder.layers[0].self_attn
        self.head_dim = attention.head_dim
        self.groups = attention.num_key_value_groups
        self.kv_heads = attention.k_proj.out_features // self.head_dim
        self.q_heads = self.kv_heads * self.groups
        self._layers = [_Layer(layer) for layer in decoder.layers]
        self._norm = _Norm(decoder.norm)
        self._embedding = decoder.embed_tokens
        self._head = _Projection.of(model.lm_head)
        self._rotary = RotaryTable(decoder.rotary_emb, self._embedding.weight)

    def cache(self, capacity: int) -> LeanCache:
        shape = (len(self._layers), 2 * self.kv_heads, capacity, self.head_dim)
        return LeanCache(self._embedding.weight.new_empty(shape))

    def head(self, hidden: Tensor) -> Tensor:
        """[R, W] after the final norm -> logits [R, V]"""
        return self._head(hidden.t().contiguous()).t().contiguous()

    def forward(
        self,
        tokens: Tensor,
        mask: RowMask,
        cache: LeanCache,
        features: tuple[int, ...] = (),
        last: int | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """tokens [R] behind the columns in use -> logits [last, V], features [R, n*W].

        features: indices into hidden_states, 0 the embeddings, the last one after the final
        norm. last: how many of the last rows get logits; None is all, 0 none.
        """
        rows = len(tokens)
        hidden = F.embedding(tokens, self._embedding.weight).t().contiguous()
        rotary = self._rotary.at(mask)
        biases: dict[int | None, Tensor | None] = {}
        taken = {}
        for index, layer in enumerate(self._layers):
            if index in features:
                taken[index] = _as_rows(hidden)
            if layer.window not in biases:
                biases[layer.window] = self._bias(mask.within(layer.window))
            self._attend(layer, hidden, rotary, biases[layer.window], cache, index)
            _feed_forward(layer, hidden)
        cache.length += rows
        final = len(self._layers)
        kept = rows if last is None else last
        if final in features:
            hidden = self._norm.columns(hidden)
            taken[final] = _as_rows(hidden)
            hidden = hidden[:, rows - kept :]
        elif kept:
            hidden = self._norm.columns(hidden[:, rows - kept :])
        logits = self._head(hidden.contiguous()).t().contiguous() if kept else None
        if not features:
            return logits, None
        return logits, torch.cat([taken[index] for index in features], -1)

    def _bias(self, visible: Tensor | None) -> Tensor | None:
        """bool [R, T] -> what is added to the scores of a k head's rows, [G * R, T]."""
        if visible is None:
            return None
        bias = self._embedding.weight.new_zeros(visible.shape)
        return bias.masked_fill_(~visible, float("-inf")).repeat(self.groups, 1)

    def _attend(self, layer, hidden, rotary, bias, cache, index) -> None:
        """hidden [W, R] += attention over the cache and these rows, which it enters."""
        rows, size = hidden.shape[1], self.head_dim
        rotated = self.q_heads + self.kv_heads
        heads = layer.qkv(layer.before_attention.columns(hidden))
        heads = heads.view(-1, size, rows).transpose(1, 2).contiguous()  # [Hq + 2 Hkv, R, D]
        if layer.q_norm is not None:
            heads[: self.q_heads] = layer.q_norm.rows(heads[: self.q_heads])
            heads[self.q_heads : rotated] = layer.k_norm.rows(heads[self.q_heads : rotated])
        _rotate(heads[:rotated], rotary)
        keys_values = cache.write(index, heads[self.q_heads :])
        mixed = F.scaled_dot_product_attention(
            heads[: self.q_heads].view(1, self.kv_heads, self.groups * rows, size),
            keys_values[None, : self.kv_heads],
            keys_values[None, self.kv_heads :],
            attn_mask=bias,
            scale=layer.scaling,
        )
        mixed = mixed.view(self.kv_heads, self.groups, rows, size)
        mixed = mixed.transpose(2, 3).reshape(-1, rows)
        layer.out.add_to(hidden, mixed)


def _as_rows(hidden: Tensor) -> Tensor:
    """[W, R] -> a copy [R, W]; ``hidden`` goes on to be added to in place."""
    return hidden.t().clone(memory_format=torch.contiguous_format)


def _rotate(heads: Tensor, rotary: tuple[Tensor, Tensor]) -> None:
    """Turn heads [H, R, D] in place by (cos, sin) [R, D], sin negative in its first half."""
    cosine, sine = rotary
    swapped = heads.roll(heads.shape[-1] // 2, -1)
    heads.mul_(cosine).addcmul_(swapped, sine)


def _feed_forward(layer: _Layer, hidden: Tensor) -> None:
    """hidden [W, R] += the gated MLP"""
    both = layer.gate_up(layer.before_mlp.columns(hidden))
    layer.down.add_to(hidden, F.silu(both[: layer.width]).mul_(both[layer.width :]))
