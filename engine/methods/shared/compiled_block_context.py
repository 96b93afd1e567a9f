"""The context of a block-diffusion drafter on a CPU: OpenVINO compiles its two passes, one over committed tokens and
one over a block.

Letters in shapes: T committed tokens, B block positions, C columns of the KV buffers (one column per token), H hidden
size, D head size, Hkv key/value heads, n target layers that give features, N layers of the drafter.
"""

import numpy as np
import torch
from torch import Tensor, nn

from engine.fast.cpu.arrays import all_seen, padded
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.compiled_reader import CompiledReader
from engine.fast.cpu.store import compiled, through_module
from engine.methods.shared.block_context import BlockContext, ModuleContext
from engine.methods.shared.dflash_model import DFlashModel, Head
from engine.methods.shared.trimmed_head import TrimmedHead
from engine.model.cache import CAPACITY


class _Read(nn.Module):
    """The pass over committed tokens: features [T, n*H] at positions [T] -> keys and values of all layers, [2 N, Hkv,
    T, D]."""

    def __init__(self, drafter: DFlashModel) -> None:
        super().__init__()
        self._drafter = drafter

    def forward(self, features: Tensor, positions: Tensor) -> Tensor:
        pairs = self._drafter.context_kv(self._drafter.project(features), positions)
        return torch.stack([tensor for pair in pairs for tensor in pair])


class _Denoise(nn.Module):
    """The pass over a block: embeddings [B, H] at positions [B] -> hidden states [B, H] after the final norm. The
    arguments bias and columns are those of ``engine.fast.cpu.compiled_reader.Attention``."""

    def __init__(self, drafter: DFlashModel) -> None:
        super().__init__()
        self._drafter = drafter

    def forward(self, rows: Tensor, positions: Tensor, bias: Tensor, *columns: Tensor) -> Tensor:
        drafter = self._drafter
        cosine, sine = drafter.turn(positions)
        pairs = zip(columns[::2], columns[1::2], strict=True)
        hidden = rows[None]
        for layer, context in zip(drafter.layers, pairs, strict=True):
            hidden = layer(hidden, cosine, sine, context, bias[None, None])
        return drafter.norm(hidden)[0]


class CompiledBlocks:
    """The two compiled passes of one drafter, shared by the contexts of all its texts."""

    def __init__(self, drafter: DFlashModel) -> None:
        config = drafter.config
        rows = 3
        reading = [torch.zeros(rows, drafter.fc.in_features), torch.arange(rows)]
        self.read = Calls(compiled(_Read(drafter), reading, f"read {config}"))
        self.denoise = CompiledReader(
            _Denoise(drafter),
            (config.num_hidden_layers, config.num_key_value_heads, config.head_dim),
            lambda count: [torch.zeros(count, config.hidden_size), torch.arange(count)],
            f"denoise {config}",
            sum(weight.numel() for weight in drafter.parameters()),
            capacity=CAPACITY,
        )


class CompiledContext(BlockContext):
    """A block context that runs the compiled passes and stores keys and values in growing buffers."""

    def __init__(self, passes: CompiledBlocks) -> None:
        self._passes = passes
        self._columns = passes.denoise.columns()

    def read(self, features: Tensor) -> None:
        if not len(features):
            return
        rows = len(features)
        self._columns.reserve(self._columns.length + rows)
        shape = self._columns.shape.of(rows)
        arrays = [padded(features.numpy(), shape), self._places(shape)]
        self._passes.read(arrays, [0], lambda fresh: self._columns.append(fresh, rows))

    def denoise(self, embeddings: Tensor) -> Tensor:
        rows, columns = len(embeddings), self._columns
        added = all_seen(rows, columns.length, columns.capacity)
        arrays = [embeddings.numpy(), self._places(rows), added]
        return self._passes.denoise(columns, arrays, [0], _copied)

    def _places(self, count: int) -> np.ndarray:
        return np.arange(self._columns.length, self._columns.length + count)


def _copied(hidden: np.ndarray) -> Tensor:
    return torch.from_numpy(hidden.copy())


def compiled_head(head: TrimmedHead) -> Head:
    """Return a compiled function of the trimmed head. If compiling fails, log a line and return the module itself
    instead."""
    example = [torch.zeros(2, head.in_features)]
    calls = through_module(lambda: Calls(compiled(head, example, "trimmed head")), "The cut head")
    if calls is None:
        return head
    return lambda hidden: calls([hidden.numpy()], [0], _copied)


def compiled_contexts(drafter: DFlashModel):
    """Return a function that makes contexts; all of them share one pair of compiled passes. If the passes cannot be
    compiled, log a line and return ``ModuleContext`` instead."""
    passes = through_module(lambda: CompiledBlocks(drafter), "The diffusion drafter")
    return ModuleContext if passes is None else lambda drafter: CompiledContext(passes)
