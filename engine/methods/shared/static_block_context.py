"""The context of a block-diffusion drafter on static buffers."""

import torch
from torch import Tensor

from engine.core.transfer import to_device
from engine.fast.gpu.buffer_sets import BufferSets
from engine.fast.gpu.choice import Choice
from engine.methods.shared.block_context import BlockContext, ModuleContext
from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.marginals import BlockReader
from engine.methods.shared.static_block_buffers import BlockBuffers
from engine.model.cache import CAPACITY


def buffer_sets_of(drafter: DFlashModel) -> BufferSets:
    device, layers = drafter.norm.weight.device, len(drafter.layers)
    return BufferSets(BlockBuffers, drafter, layers, "The diffusion drafter", device)


def static_contexts(drafter: DFlashModel):
    """Returns a function that makes contexts over the drafter's buffer sets. Where nothing can be captured
    (the log says so), it makes plain contexts, which are better then."""
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
        """The choice for a block of tokens (the root, then masks), in one replay."""
        return self._buffers.draft(tokens, self._length, target, choice, drawn)


@torch.no_grad()
def choose(
    reader: BlockReader, root: int, choice: Choice, drawn: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The choice for the rows after the root, left on the device.

    drawn: on the host, the choice's number for each row that will be used; None if nothing is drawn.
    """
    context, target = reader.context, reader.target
    if isinstance(context, StaticContext):
        return context.draft(reader.block(root), target, choice, drawn)
    held = torch.zeros(choice.length, dtype=torch.float64)
    if drawn is not None:
        held[: len(drawn)] = drawn
    hidden, head = reader.denoise(root), reader.drafter.head_beside(target)
    return choice(head(hidden[1 : choice.length + 1]), to_device(held, target.device))
