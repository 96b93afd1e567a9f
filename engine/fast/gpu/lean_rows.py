"""A pass of Llama-class models with few kernel launches, over the module's own weights.

Such a pass has 15 launches per layer instead of 41 (Llama) or 57 (Qwen3). In half precision it has 17, because each of
two norms rounds twice. On a GPU a launch costs about as much time as reading eight megabytes of weights.

One matrix product gives q, k and v, and another gives gate and up. A product whose result is added to the residual also
does this addition. In float32 a norm is one kernel. All operations are torch's, apart from the attention kernel.
Arguments and result are those of a transformers module.

Letters in shapes: B sequences, R rows each, W hidden size, D head size, Hq and Hkv heads.
"""

from collections.abc import Sequence
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)

from engine.fast.gpu.static_attention import tree_attention
from engine.fast.gpu.static_cache import StaticCache, StaticLayer

CLASSES = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)

Rotary = tuple[Tensor, Tensor]
"""cos and sin of the rotary angles, each [B, R, 1, D]; the first half of sin is negated."""


def fits(model: PreTrainedModel) -> bool:
    """Whether this module is one of ``CLASSES``, with plain linear layers, one dtype and a SiLU gate."""
    if type(model) not in CLASSES:
        return False
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    plain = all(type(module) is nn.Linear for module in linear)
    per_layer = 7  # q, k, v, o, gate, up, down
    complete = len(linear) == per_layer * len(model.model.layers) + 1
    same_dtype = len({parameter.dtype for parameter in model.parameters()}) == 1
    return plain and complete and same_dtype and model.config.hidden_act == "silu"


class LeanRows:
    """The forward pass of one module of ``CLASSES``. The constructor joins the module's weights."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._layers = [_Layer(layer) for layer in model.model.layers]

    def get_output_embeddings(self) -> nn.Module:
        return self._model.get_output_embeddings()

    def __call__(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        past_key_values: StaticCache,
        row_mask,
        output_hidden_states: bool,
        **_: object,
    ) -> SimpleNamespace:
        """Run the pass: tokens and their positions [B, R] -> logits [B, R, V] and hidden_states.

        hidden_states: one tensor [B, R, W] for each layer's input and one for the normed output; None unless
        ``output_hidden_states``. The cache decides to which columns the keys and values are written.
        """
        decoder, shape = self._model.model, input_ids.shape
        hidden = decoder.embed_tokens(input_ids).flatten(0, 1)
        turn = _turn(*decoder.rotary_emb(hidden, position_ids))
        states = []
        for layer, own in zip(self._layers, past_key_values.layers, strict=True):
            states.append(hidden)
            mixed = layer.attend(hidden.unflatten(0, shape), turn, row_mask, own)
            hidden = layer.add(hidden, mixed, fresh=output_hidden_states)
            layer.feed_forward(hidden)
        hidden = _normed(hidden, decoder.norm)
        logits = self._model.lm_head(hidden).unflatten(0, shape)
        if not output_hidden_states:
            return SimpleNamespace(logits=logits, hidden_states=None)
        states = [state.unflatten(0, shape) for state in (*states, hidden)]
        return SimpleNamespace(logits=logits, hidden_states=states)


def _turn(cosine: Tensor, sine: Tensor) -> Rotary:
    """The ``Rotary`` form of cos and sin [B, R, D], as transformers computes them."""
    low, high = sine.chunk(2, -1)
    return cosine[:, :, None], torch.cat([-low, high], -1)[:, :, None]


def _normed(rows: Tensor, module: nn.Module) -> Tensor:
    """The rows [..., W], normed as the module does. In half precision the module rounds twice: before and after the
    multiplication by its weight. A single kernel rounds once and would give other numbers."""
    shape, epsilon = module.weight.shape, module.variance_epsilon
    if rows.dtype == torch.float32:
        return F.rms_norm(rows, shape, module.weight, epsilon)
    return module.weight * F.rms_norm(rows, shape, None, epsilon)


class _Layer:
    """One transformer block whose matrix products are joined."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._attention, self._mlp = attention, mlp = module.self_attn, module.mlp
        self._size = attention.head_dim
        self._q = attention.q_proj.out_features // self._size
        self._qk = self._q + attention.k_proj.out_features // self._size
        self._qkv, self._qkv_bias = fuse([attention.q_proj, attention.k_proj, attention.v_proj])
        self._gate_up, self._gate_up_bias = fuse([mlp.gate_proj, mlp.up_proj])
        self._window = _window_of(attention)
        self._gains = self._epsilon = None
        if hasattr(attention, "q_norm"):
            norms = [attention.q_norm] * self._q + [attention.k_norm] * (self._qk - self._q)
            self._gains = torch.stack([norm.weight.data for norm in norms])
            self._epsilon = attention.q_norm.variance_epsilon

    def attend(self, hidden: Tensor, turn: Rotary, mask, own: StaticLayer) -> Tensor:
        """Attention of the block: hidden [B, R, W] -> the outputs of all heads side by side, [B * R, Hq * D]."""
        rows = _normed(hidden, self._module.input_layernorm)
        heads = F.linear(rows, self._qkv, self._qkv_bias).unflatten(-1, (-1, self._size))
        values = heads[:, :, self._qk :]
        turned = self._turned(heads, *turn)
        keys, values = own.update(*(x.transpose(1, 2) for x in (turned[:, :, self._q :], values)))
        mixed, _ = tree_attention(
            self._attention, turned[:, :, : self._q].transpose(1, 2), keys, values, None,
            self._attention.scaling, row_mask=mask, sliding_window=self._window,
        )  # fmt: skip
        return mixed.flatten(0, 1).flatten(1)

    def add(self, hidden: Tensor, mixed: Tensor, fresh: bool) -> Tensor:
        """Return hidden [B * R, W] plus the output projection of ``mixed``, the heads' outputs. fresh: return a new
        tensor, because the caller still needs ``hidden``; if false, add in place."""
        return _add(hidden, mixed, self._attention.o_proj, fresh)

    def _turned(self, heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Return the q and k heads [B, R, Hq + Hkv, D], normed and rotated to their positions. heads: the q, k and v
        heads."""
        rotated = heads[:, :, : self._qk]
        if self._gains is not None:
            rotated = F.rms_norm(rotated, (self._size,), None, self._epsilon) * self._gains
        swapped = rotated.roll(self._size // 2, -1)
        return (rotated * cosine).addcmul_(swapped, sine)

    def feed_forward(self, hidden: Tensor) -> None:
        """Add the output of the block's MLP to hidden [B * R, W], in place."""
        rows = _normed(hidden, self._module.post_attention_layernorm)
        gate, up = F.linear(rows, self._gate_up, self._gate_up_bias).chunk(2, -1)
        _add(hidden, F.silu(gate).mul_(up), self._mlp.down_proj)


def _window_of(attention: nn.Module) -> int | None:
    """Return the sliding window of an attention layer, or None. Qwen models hold the window in each layer, Mistral
    models in the config."""
    if hasattr(attention, "sliding_window"):
        return attention.sliding_window
    config = getattr(attention, "config", None)
    if isinstance(config, MistralConfig):
        return config.sliding_window
    return None


def _add(hidden: Tensor, rows: Tensor, module: nn.Linear, fresh: bool = False) -> Tensor:
    """Return hidden [B * R, outputs] plus the module's output for ``rows`` [B * R, inputs]; add in place unless
    ``fresh``."""
    add = torch.addmm if fresh else torch.Tensor.addmm_
    total = add(hidden, rows, module.weight.t())
    return total if module.bias is None else total.add_(module.bias)


def fuse(modules: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Return the joined weight [sum of outputs, inputs] of several linear modules, and their joined bias [sum of
    outputs], or None if they have none.

    The modules' own parameters become views of the joined tensors, so the modules work as before and no weight is in
    memory twice. A single module keeps its own parameters.
    """
    if len(modules) == 1:
        (module,) = modules
        return module.weight.data, None if module.bias is None else module.bias.data
    weight = _joined([module.weight for module in modules])
    if modules[0].bias is None:
        return weight, None
    return weight, _joined([module.bias for module in modules])


def _joined(parameters: list[nn.Parameter]) -> Tensor:
    joined = torch.cat([parameter.data for parameter in parameters])
    start = 0
    for parameter in parameters:
        end = start + len(parameter)
        parameter.data = joined[start:end]
        start = end
    return joined
