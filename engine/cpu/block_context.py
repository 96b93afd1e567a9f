"""The context of a block-diffusion drafter on a CPU, through its lean forward."""

from torch import Tensor

from engine.cpu.lean_block import LeanBlock
from engine.parts.block_context import CAPACITY, BlockContext
from engine.parts.dflash_model import DFlashModel


class LeanContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, lean: LeanBlock) -> None:
        self._lean = lean
        self._cache = lean.cache(CAPACITY)

    def read(self, features: Tensor) -> None:
        self._lean.read(features, self._cache)

    def denoise(self, embeddings: Tensor) -> Tensor:
        return self._lean.denoise(embeddings, self._cache)


def lean_contexts(drafter: DFlashModel):
    """Makes contexts over one lean forward of this drafter. The forward moves the drafter's weights."""
    lean = LeanBlock(drafter)
    return lambda drafter: LeanContext(lean)
