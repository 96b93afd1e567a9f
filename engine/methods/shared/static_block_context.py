"""The context of a block-diffusion drafter on CUDA: its passes run on static buffers and are captured as CUDA
graphs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.core.transfer import into
from engine.fast.gpu.buffer_sets import BufferSet, Pass
from engine.fast.gpu.choice import OneEach
from engine.fast.gpu.inputs import DeviceRows, Size, StepInputs
from engine.fast.gpu.static_attention import tree_attention
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import StaticMask
from engine.fast.kernels.bits import WORD
from engine.fast.kernels.lang import power_of_two
from engine.methods.shared.dflash_model import DFlashAttention, DFlashModel

if TYPE_CHECKING:
    from engine.model.language_model import LanguageModel
from engine.core.transfer import to_device
from engine.fast.gpu.buffer_sets import BufferSets
from engine.methods.shared.block_context import BlockContext, ModuleContext
from engine.methods.shared.marginals import BlockReader
from engine.model.cache import CAPACITY

MOST_READ = 32  # the most rows of features in a captured pass; more rows, as of a prompt, are read in a plain pass


class BlockBuffers(BufferSet):
    """A set of static buffers and captured passes for one text. The letters in shapes are those of
    ``engine.methods.shared.dflash_model``."""

    def read(self, features: Tensor, length: int) -> None:
        """Compute the keys and values of T committed tokens from their features [T, n*H], and write them to the buffers
        after the first ``length`` columns."""
        count = len(features)
        if not count:
            return
        self.cache.length = length
        if count > MOST_READ:
            self._make_room(length + count)
            _read_plainly(self._sets.module, features, self.cache)
            return
        size = Size.of(count, 0)
        self._make_room(length + size.scratch)
        key = ("read", size)
        if key not in self._passes:
            inputs = StepInputs(size, self._sets.device)
            extra_input = features.new_zeros(size.rows, features.shape[-1])
            function = partial(read, self._sets.module, inputs, extra_input, self.cache)
            self._passes[key] = Pass(inputs, extra_input, function)
        static_pass = self._passes[key]
        static_pass.inputs.load(_rows(length, count))
        static_pass.extra_input[:count].copy_(features)
        self._run(key)

    def denoise(self, embeddings: Tensor, length: int) -> Tensor:
        """Run a block that follows the first ``length`` columns: embeddings [B, H] -> hidden states [B, H]. These
        columns are not changed."""
        count = len(embeddings)
        size = Size(count, power_of_two(-(-count // WORD)))
        self.cache.length = length
        self._make_room(length + size.scratch)
        key = ("denoise", size)
        if key not in self._passes:
            inputs, extra_input = StepInputs(size, self._sets.device), torch.zeros_like(embeddings)
            function = partial(denoise, self._sets.module, inputs, extra_input, self.cache)
            self._passes[key] = Pass(inputs, extra_input, function)
        static_pass = self._passes[key]
        static_pass.inputs.load(_rows(length, count))
        static_pass.extra_input.copy_(embeddings)
        return self._run(key).clone()

    def draft(
        self,
        tokens: Sequence[int],
        length: int,
        target: LanguageModel,
        choice: OneEach,
        drawn: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Denoise a block of these tokens after the first ``length`` columns, which are not changed, and choose the
        block's drafted tokens. Returns the chosen tokens, and their distributions q or None, both on the device.

        drawn: uniform random numbers for the first of the drafted tokens, or for all of them; None at temperature 0.
        """
        count = len(tokens)
        size = Size(count, power_of_two(-(-count // WORD)))
        self.cache.length = length
        self._make_room(length + size.scratch)
        key = ((choice,), size, target)
        if key not in self._passes:
            self._forget_laws_but((choice,))
            inputs = StepInputs(size, self._sets.device)
            held = torch.zeros(choice.length, dtype=torch.float64, device=self._sets.device)
            function = partial(draft, self._sets.module, inputs, self.cache, target, choice, held)
            self._passes[key] = Pass(inputs, held, function)
        static_pass = self._passes[key]
        static_pass.inputs.load(_rows(length, count, tokens))
        if drawn is not None:
            into(static_pass.extra_input[: len(drawn)], drawn)
        ids, q = self._run(key)
        return ids.clone(), None if q is None else q.clone()


def _rows(length: int, count: int, tokens: Sequence[int] = ()) -> DeviceRows:
    """Return the input rows of a block after ``length`` columns: ``count`` consecutive rows, each of which attends to
    all rows of the block."""
    return DeviceRows(tokens or [0] * count, length, range(count), [(1 << count) - 1] * count)


def _read_plainly(drafter: DFlashModel, features: Tensor, cache: StaticCache) -> None:
    """Compute keys and values from any number of features [T, n*H] and append them to the cache, in a pass that is not
    captured."""
    first = cache.length
    places = torch.arange(first, first + len(features), device=features.device)
    fresh = drafter.context_kv(drafter.project(features), places)
    for own, (keys, values) in zip(cache.layers, fresh, strict=True):
        own.update(keys[None], values[None])


def read(drafter: DFlashModel, inputs: StepInputs, features: Tensor, cache: StaticCache) -> None:
    """Compute keys and values from features [R, n*H] and write them to the cache. Padding rows write columns, too; the
    next pass overwrites these."""
    mask = StaticMask(inputs, cache.capacity)
    fresh = drafter.context_kv(drafter.project(features), mask.row_positions[0])
    with cache.written_at(mask.columns):
        for own, (keys, values) in zip(cache.layers, fresh, strict=True):
            own.update(keys[None], values[None])


def denoise(
    drafter: DFlashModel, inputs: StepInputs, embeddings: Tensor, cache: StaticCache
) -> Tensor:
    """Like ``DFlashModel.forward_block``, but on static buffers of full size: embeddings [B, H] -> hidden states [B,
    H]."""
    mask = StaticMask(inputs, cache.capacity)
    turn = drafter.turn(mask.row_positions[0])
    rows = embeddings
    with cache.written_at(mask.columns):
        for layer, own in zip(drafter.layers, cache.layers, strict=True):
            rows = rows + _attend(layer.self_attn, layer.input_layernorm(rows), turn, mask, own)
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
    return drafter.norm(rows)


def draft(
    drafter: DFlashModel,
    inputs: StepInputs,
    cache: StaticCache,
    target: LanguageModel,
    choice: OneEach,
    drawn: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Denoise the block of ``inputs.tokens``, the root first, and choose the drafted tokens. Returns the tokens, and
    their distributions q or None."""
    hidden = denoise(drafter, inputs, target.embed(inputs.tokens[0]), cache)
    first = drafter.config.first_row
    return choice(drafter.head_beside(target)(hidden[first : first + choice.length]), drawn)


def _attend(attention: DFlashAttention, rows: Tensor, turn, mask: StaticMask, own) -> Tensor:
    """Return the attention output of the block's rows [B, H], which attend to the columns before the block and to each
    other."""
    queries = attention.queries(rows, *turn)
    fresh = (part[None] for part in attention.keys_values(rows, *turn))
    keys, values = own.update(*fresh)
    mixed, _ = tree_attention(attention, queries[None], keys, values, None, row_mask=mask)
    return attention.o_proj(mixed[0].flatten(-2))


def buffer_sets_of(drafter: DFlashModel) -> BufferSets:
    device, layers = drafter.norm.weight.device, len(drafter.layers)
    return BufferSets(BlockBuffers, drafter, layers, "The diffusion drafter", device)


def static_contexts(drafter: DFlashModel):
    """Return a function that makes contexts on the drafter's sets of buffers. If passes cannot be captured, which is
    logged elsewhere, the function makes ``ModuleContext``s instead, because static passes that are not captured are
    slower."""
    sets = buffer_sets_of(drafter)
    return lambda drafter: StaticContext(sets) if sets.usable else ModuleContext(drafter)


class StaticContext(BlockContext):
    """A block context on a set of static buffers."""

    def __init__(self, sets: BufferSets) -> None:
        self._buffers = sets.take(self, CAPACITY)
        self._length = 0

    def read(self, features: Tensor) -> None:
        self._buffers.read(features, self._length)
        self._length += len(features)

    def denoise(self, embeddings: Tensor) -> Tensor:
        return self._buffers.denoise(embeddings, self._length)

    def draft(self, tokens, target, choice, drawn):
        """Denoise a block of tokens (the root, then masks) and choose its drafted tokens, in one replay of a captured
        pass. Returns the tokens, and their distributions q or None."""
        return self._buffers.draft(tokens, self._length, target, choice, drawn)


@torch.no_grad()
def choose(
    reader: BlockReader, root: int, choice: OneEach, drawn: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Denoise a block after the committed tokens and choose its drafted tokens. Returns the tokens, and their
    distributions q or None, on the device.

    drawn: uniform random numbers on the host, for the first of the drafted tokens or for all of them; None if no token
    is drawn.
    """
    context, target = reader.context, reader.target
    if isinstance(context, StaticContext):
        return context.draft(reader.block(root), target, choice, drawn)
    held = torch.zeros(choice.length, dtype=torch.float64)
    if drawn is not None:
        held[: len(drawn)] = drawn
    hidden, head = reader.denoise(root), reader.drafter.head_beside(target)
    first = reader.drafter.config.first_row
    return choice(head(hidden[first : first + choice.length]), to_device(held, target.device))
