"""One block of the Llama class, written out plainly over the weights of its module.

What makes it fast: q, k and v come out of one product, gate and up out of another; activations
lie as this processor's products like them (``engine.cpu.lean_order``); rows of the q heads that share
a k head are read as one; keys and values are written straight into the cache. No weight exists
twice: the module's parameters become views of the fused ones, or give way to their packed form.

Letters in shapes: R rows, T columns, W hidden size, D head size, Hq and Hkv heads, G = Hq / Hkv;
"laid" is [R, W] or [W, R], as ``lean_order`` has it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import MistralConfig

from engine.cpu.fused import fuse, give_up_weights
from engine.cpu.lean_cache import LeanCache
from engine.cpu.lean_order import order

Rotary = tuple[Tensor, Tensor]
"""cos and sin, each [R, D]; the first half of sin is negated."""


class Norm:
    """RMS norm. F.rms_norm takes seven small kernels a call; ``laid`` takes five."""

    def __init__(self, module: nn.Module) -> None:
        self.weight = module.weight.data
        self.epsilon = module.eps if isinstance(module, nn.RMSNorm) else module.variance_epsilon
        self._order = order()
        self._gain = self._order.lay(self.weight[None])
        width = len(self.weight)
        self._share = self._order.lay(self.weight.new_full((1, width), 1 / width)).t()
        self._floor = self.weight.new_full((1, 1), self.epsilon)

    def rows(self, x: Tensor) -> Tensor:
        """[..., width] normed over the last dimension."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)

    def laid(self, x: Tensor) -> Tensor:
        """Laid, each row normed."""
        if x.dtype != torch.float32:  # squares want fp32, which F.rms_norm sees to
            return self._order.lay(self.rows(self._order.as_rows(x)))
        scale = self._order.mean(x * x, self._share, self._floor).rsqrt_()
        return (x * scale).mul_(self._gain)


class Projection:
    """One or several linear layers as one product. bias: [out] or None."""

    def __init__(self, weight: Tensor, bias: Tensor | None, packable: bool = True) -> None:
        self.bias, self._order = bias, order()
        self._held = self._order.hold(weight, packable)
        self.moved = self._held.layout != weight.layout

    @classmethod
    def of(cls, *modules: nn.Linear, packable: bool = True) -> "Projection":
        """packable: whether the weight may take another form; not where others use it, too."""
        made = cls(*fuse(modules), packable)
        if made.moved:
            give_up_weights(modules, made.rows)
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """Laid, ``in`` features -> laid, ``out`` features."""
        return self._order.product(self._held, x, self.bias)

    def rows(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]"""
        flat = x.reshape(-1, x.shape[-1])
        return self._order.as_rows(self(self._order.lay(flat))).reshape(*x.shape[:-1], -1)

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """hidden (laid) += this of x (laid)"""
        self._order.add_product(hidden, self._held, x)
        if self.bias is not None:
            hidden.add_(self._order.lay(self.bias[None]))


class Layer:
    """One block: its weights, named as they are used, and what it does with rows.

    The module is a decoder layer of transformers' Llama class, or one of the same shape.
    """

    def __init__(self, module: nn.Module) -> None:
        attention, mlp = module.self_attn, module.mlp
        self._order = order()
        self.head_dim = attention.head_dim
        self.kv_heads = attention.k_proj.out_features // self.head_dim
        self.q_heads = attention.q_proj.out_features // self.head_dim
        self.groups = self.q_heads // self.kv_heads
        self.before_attention = Norm(module.input_layernorm)
        self.qkv = Projection.of(attention.q_proj, attention.k_proj, attention.v_proj)
        normed = hasattr(attention, "q_norm")
        self.q_norm = Norm(attention.q_norm) if normed else None
        self.k_norm = Norm(attention.k_norm) if normed else None
        self.out = Projection.of(attention.o_proj)
        self.before_mlp = Norm(module.post_attention_layernorm)
        self.gate_up = Projection.of(mlp.gate_proj, mlp.up_proj)
        self.down = Projection.of(mlp.down_proj)
        self.width = mlp.gate_proj.out_features
        self.scaling = getattr(attention, "scaling", self.head_dim**-0.5)
        self.window = window_of(attention)

    def attend(
        self, hidden: Tensor, rotary: Rotary, bias: Tensor | None, cache: LeanCache, index: int
    ) -> None:
        """hidden (laid) += attention over the cache's layer ``index`` and these rows, which it
        enters behind the columns in use. bias: [G * R, T], added to the scores; None: all is seen.
        """
        heads = self._heads(self.before_attention.laid(hidden))
        rows, rotated = heads.shape[1], self.q_heads + self.kv_heads
        if self.q_norm is not None:
            heads[: self.q_heads] = self.q_norm.rows(heads[: self.q_heads])
            heads[self.q_heads : rotated] = self.k_norm.rows(heads[self.q_heads : rotated])
        _rotate(heads[:rotated], rotary)
        keys, values = cache.write(index, heads[self.q_heads :])
        mixed = F.scaled_dot_product_attention(
            heads[: self.q_heads].view(1, self.kv_heads, self.groups * rows, self.head_dim),
            keys,
            values,
            attn_mask=bias,
            scale=self.scaling,
        )
        mixed = mixed.view(self.q_heads, rows, self.head_dim)
        self.out.add_to(hidden, self._order.join_heads(mixed))

    def keys_values(self, x: Tensor, rotary: Rotary) -> Tensor:
        """x (laid), normed already -> what attention keeps of its rows, [2 * Hkv, R, D]."""
        heads = self._heads(x)[self.q_heads :]
        keys = heads[: self.kv_heads]
        if self.k_norm is not None:
            keys.copy_(self.k_norm.rows(keys))
        _rotate(keys, rotary)
        return heads

    def feed_forward(self, hidden: Tensor) -> None:
        """hidden (laid) += the gated MLP"""
        both = self.gate_up(self.before_mlp.laid(hidden))
        gate, up = (both.narrow(self._order.features, at, self.width) for at in (0, self.width))
        self.down.add_to(hidden, F.silu(gate).mul_(up))

    def _heads(self, x: Tensor) -> Tensor:
        """laid -> q, k and v heads, [Hq + 2 * Hkv, R, D]"""
        return self._order.split_heads(self.qkv(x), self.head_dim)


def window_of(attention: nn.Module) -> int | None:
    """The sliding window of a layer: Qwen keeps one a layer, Mistral one for all."""
    if hasattr(attention, "sliding_window"):
        return attention.sliding_window
    config = getattr(attention, "config", None)
    if isinstance(config, MistralConfig):
        return config.sliding_window
    return None


def _rotate(heads: Tensor, rotary: Rotary) -> None:
    """Turn heads [H, R, D] in place by (cos, sin) [R, D], sin negative in its first half."""
    cosine, sine = rotary
    swapped = heads.roll(heads.shape[-1] // 2, -1)
    heads.mul_(cosine).addcmul_(swapped, sine)
