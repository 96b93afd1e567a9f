"""The context of a block-diffusion drafter on buffers that keep their place."""

import torch
from torch import Tensor

from engine.drafters.marginals import BlockReader
from engine.gpu.block_buffers import BlockBuffers
from engine.gpu.buffer_sets import BufferSets
from engine.gpu.choice import Choice
from engine.parts.block_context import CAPACITY, BlockContext, ModuleContext
from engine.parts.dflash_model import DFlashModel
from engine.transfer import to_device


def buffer_sets_of(drafter: DFlashModel) -> BufferSets:
    device, layers = drafter.norm.weight.device, len(drafter.layers)
    return BufferSets(BlockBuffers, drafter, layers, "The diffusion drafter", device)


def static_contexts(drafter: DFlashModel):
    """Makes contexts over the drafter's buffer sets. Where nothing can be captured, of which the log speaks,
    the plain way is the better one."""
    sets = buffer_sets_of(drafter)
    return lambda drafter: StaticContext(sets) if sets.usable else ModuleContext(drafter)


class StaticContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, sets: BufferSets) -> None:
        self._buffers = sets.take(self, CAPACITY)
        self._length = 0

    def read(self, features: Tensor) -> None:
        self._buffers.read(features, self._length)
        self._length += len(features)

    def denoise(self, embeddings: Tensor) -> Tensor:
        return self._buffers.denoise(embeddings, self._length)

    def draft(self, tokens, target, choice, drawn):
        """The choice for a block of tokens, the root first and masks behind it, in one replay."""
        return self._buffers.draft(tokens, self._length, target, choice, drawn)


@torch.no_grad()
def choose(
    reader: BlockReader, root: int, choice: Choice, drawn: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The choice for the rows after the root, left on the device.

    drawn: uniforms on the host, of as many rows as will be looked at; None if nothing is drawn.
    """
    context, target = reader.context, reader.target
    if isinstance(context, StaticContext):
        return context.draft(reader.block(root), target, choice, drawn)
    held = torch.zeros(choice.length, dtype=torch.float64)
    if drawn is not None:
        held[: len(drawn)] = drawn
    hidden = reader.denoise(root)
    return choice(target.head(hidden[1 : choice.length + 1]), to_device(held, target.device))
