"""The context of a block-diffusion drafter: keys and values of the committed text, and the passes over a block after
it."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.module_columns import ModuleColumns


class BlockContext(ABC):
    """The committed rows of one sequence, for a block drafter. Shapes: T committed rows, B block rows, H hidden size,
    n feature layers."""

    @abstractmethod
    def read(self, features: Tensor) -> None:
        """Append committed rows. features: the target's hidden states [T, n*H] of the newly committed tokens."""

    @abstractmethod
    def denoise(self, embeddings: Tensor) -> Tensor:
        """Run the block after the committed rows: embeddings [B, H] -> hidden states [B, H] after the final norm."""


def context_of(drafter: DFlashModel) -> BlockContext:
    """A new, empty context: from the drafter's own maker if it has one, otherwise a ``ModuleContext``."""
    return (drafter.make_context or ModuleContext)(drafter)


class ModuleContext(BlockContext):
    """A block context that runs the drafter's module in plain torch."""

    def __init__(self, drafter: DFlashModel) -> None:
        self._drafter = drafter
        self._columns = ModuleColumns.of(len(drafter.layers))

    def read(self, features: Tensor) -> None:
        projected = self._drafter.project(features)
        fresh = self._drafter.context_kv(projected, self._places(len(features), features.device))
        for layer, pair in enumerate(fresh):
            self._columns.append(layer, *pair)

    def denoise(self, embeddings: Tensor) -> Tensor:
        context = [self._columns.read(layer) for layer in range(len(self._drafter.layers))]
        places = self._places(len(embeddings), embeddings.device)
        return self._drafter.forward_block(embeddings, places, context)

    def _places(self, count: int, device: torch.device) -> Tensor:
        length = self._columns.length
        return torch.arange(length, length + count, device=device)
