"""A lean forward of Llama-class models, over the weights of the transformers module.

Llama, Mistral, Qwen2 and Qwen3 are one block (``engine.cpu.lean_layer``): norm, rotary attention
(perhaps with biases, with norms on q and k, with a window), norm, gated MLP. On a CPU most of
what transformers spends on a few rows is overhead, so here the same is written out plainly; for
a GPU ``engine.gpu.lean_rows`` does that.

Letters in shapes: R rows, T columns, V vocabulary, W hidden size, G q heads a k head. Activations
lie as ``engine.cpu.lean_order`` has it.
"""

import torch
from torch import Tensor, nn
from transformers import (
    LlamaForCausalLM,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)

from engine.cpu.lean_cache import LeanCache
from engine.cpu.lean_layer import Layer, Norm, Projection
from engine.cpu.lean_order import order
from engine.cpu.rotary import RotaryTable
from engine.target.layers import ATTENTION, EVERY, MLP, Layers
from engine.target.row_mask import RowMask

CLASSES = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


def fits(model: PreTrainedModel) -> bool:
    """Whether this module is of the class: plain linear layers, a SiLU gate."""
    if type(model) not in CLASSES:
        return False
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    plain = all(type(module) is nn.Linear for module in linear)
    per_layer = 7  # q, k, v, o, gate, up, down
    complete = len(linear) == per_layer * len(model.model.layers) + 1
    same_dtype = len({parameter.dtype for parameter in model.parameters()}) == 1
    return plain and complete and same_dtype and model.config.hidden_act == "silu"


class LeanLlama:
    """The forward of one module of the class. Building it moves the module's weights."""

    def __init__(self, model: PreTrainedModel) -> None:
        decoder = model.model
        self._order = order()
        self._layers = [Layer(layer) for layer in decoder.layers]
        self._norm = Norm(decoder.norm)
        self._embedding = decoder.embed_tokens.weight.data
        tied = model.lm_head.weight.data_ptr() == self._embedding.data_ptr()
        self._head = Projection.of(model.lm_head, packable=not tied)
        self._rotary = RotaryTable(decoder.rotary_emb, self._embedding)

    def cache(self, capacity: int) -> LeanCache:
        first = self._layers[0]
        return LeanCache.empty(len(self._layers), first, capacity, self._embedding)

    def head(self, hidden: Tensor) -> Tensor:
        """[R, W] after the final norm -> logits [R, V]"""
        return self._order.as_rows(self._head(self._order.lay(hidden)))

    def forward(
        self,
        tokens: Tensor,
        mask: RowMask,
        cache: LeanCache,
        features: tuple[int, ...] = (),
        last: int | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """tokens [R] behind the columns in use -> logits [last, V], features [R, n*W].

        tokens: ids, or vectors [R, W] in the place of their embeddings. features: indices into hidden_states, 0 the embeddings, the last one after the final
        norm. last: how many of the last rows get logits; None is all, 0 none.
        """
        rows, taken = len(tokens), {}
        hidden = self._run(tokens, mask, cache, EVERY, features, taken)
        final = len(self._layers)
        kept = rows if last is None else last
        if final in features:
            hidden = self._norm.laid(hidden)
            taken[final] = self._order.as_rows(hidden)
            hidden = self._last(hidden, kept)
        elif kept:
            hidden = self._norm.laid(self._last(hidden, kept))
        logits = self._order.as_rows(self._head(hidden)) if kept else None
        if not features:
            return logits, None
        return logits, torch.cat([taken[index] for index in features], -1)

    def states(
        self, given: Tensor, mask: RowMask, cache: LeanCache, layers: Layers = EVERY
    ) -> Tensor:
        """As ``engine.target.session.Session.states``: [R] or [R, W] -> [R, W]"""
        hidden = self._run(given, mask, cache, layers, (), {})
        if layers.stop is None:
            hidden = self._norm.laid(hidden)
        return self._order.as_rows(hidden)

    def norm(self, hidden: Tensor) -> Tensor:
        """[R, W] -> [R, W] after the final norm"""
        return self._order.as_rows(self._norm.laid(self._order.lay(hidden)))

    def _run(
        self,
        given: Tensor,
        mask: RowMask,
        cache: LeanCache,
        layers: Layers,
        features: tuple[int, ...],
        taken: dict[int, Tensor],
    ) -> Tensor:
        """Rows through these layers, laid. taken: receives the inputs [R, W] of the layers that are
        named in ``features``."""
        vectors = given if given.is_floating_point() else self._embedding.index_select(0, given)
        hidden = self._order.lay(vectors)
        if vectors is given:
            hidden = hidden.clone()  # layers add to it in place
        rotary = self._rotary.at(mask)
        biases: dict[int | None, Tensor | None] = {}
        for index, layer in enumerate(self._layers):
            if index in features:
                taken[index] = self._order.as_rows(hidden).clone()
            if layers.runs(index, ATTENTION):
                if layer.window not in biases:
                    biases[layer.window] = self._bias(mask.within(layer.window))
                layer.attend(hidden, rotary, biases[layer.window], cache, index)
            if layers.runs(index, MLP):
                layer.feed_forward(hidden)
        cache.length += len(given)
        return hidden

    def _last(self, hidden: Tensor, count: int) -> Tensor:
        """The last rows, laid."""
        over = 1 - self._order.features
        rows = hidden.shape[over]
        if count == rows:
            return hidden
        return hidden.narrow(over, rows - count, count).contiguous()

    def _bias(self, visible: Tensor | None) -> Tensor | None:
        """bool [R, T] -> what is added to the scores of a k head's rows, [G * R, T]."""
        if visible is None:
            return None
        bias = self._embedding.new_zeros(visible.shape)
        return bias.masked_fill_(~visible, float("-inf")).repeat(self._layers[0].groups, 1)
