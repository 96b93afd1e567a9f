"""Tests whether OpenVINO can compile a module, and finds the module's sliding windows and the shapes of its columns."""

import torch
from torch import Tensor, nn

from engine.model.cache import KVCache
from engine.model.forward import forward
from engine.model.layers import Layers, passed
from engine.model.row_mask import RowMask

_CPU = torch.device("cpu")
_BY_LENGTH = {"dynamic", "longrope"}  # rotary angles that change as the text grows


class NotConvertible(Exception):
    """A module cannot be compiled; its passes stay uncompiled. The message is the reason."""


def check(module: nn.Module) -> None:
    """Raise NotConvertible if the module cannot be compiled."""
    if {parameter.dtype for parameter in module.parameters()} != {torch.float32}:
        raise NotConvertible("its weights are not fp32")
    for part in module.modules():
        kinds = getattr(part, "rope_type", None)
        kinds = kinds.values() if isinstance(kinds, dict) else [kinds]
        if _BY_LENGTH & {kind for kind in kinds if isinstance(kind, str)}:
            raise NotConvertible("its rotary angles change as the text grows")


class _Asked(RowMask):
    """A mask that records each sliding window for which the module has requested the mask."""

    def __init__(self) -> None:
        super().__init__(0, [0, 1], [0b1, 0b11], _CPU)
        self.windows: dict[int | None, None] = {}

    def within(self, window: int | None) -> Tensor | None:
        self.windows[window] = None
        return super().within(window)


@torch.no_grad()
def windows_of(module: nn.Module, count: int, layers: Layers) -> list[int | None]:
    """The different sliding windows of these layers of a module with ``count`` layers; None stands for full
    attention."""
    mask, tokens = _Asked(), torch.zeros(2, dtype=torch.long)
    rows = torch.zeros(2, module.get_input_embeddings().embedding_dim)
    passed(module, rows, tokens, mask.row_positions, mask, KVCache.empty(count, 2), layers)
    return list(mask.windows)


@torch.no_grad()
def seen(module: nn.Module) -> tuple[list[Tensor], list[int | None]]:
    """Run a pass of two rows through the module; returns k and v of each layer, [1, Hkv, 2, D] for Hkv key-value heads
    of size D, and the sliding windows of the layers without repetition, with None for full attention."""
    mask = _Asked()
    layers = module.config.get_text_config().num_hidden_layers
    cache = KVCache.empty(layers, 2)
    forward(module, torch.zeros(1, 2, dtype=torch.long), mask.row_positions[None], mask, cache, ())
    columns = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    return columns, list(mask.windows)
