"""The context of a block-diffusion drafter: it holds the keys and values of the committed text, and runs the passes
over a block of new positions after this text."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.module_columns import ModuleColumns


class BlockContext(ABC):
    """The keys and values of the committed tokens of one text, for a block drafter. A row is one token. Letters in
    shapes: T committed rows, B block rows, H hidden size, n target layers that give features."""

    @abstractmethod
    def read(self, features: Tensor) -> None:
        """Append committed tokens to the context. features: the target's hidden states [T, n*H] of these T tokens."""

    @abstractmethod
    def denoise(self, embeddings: Tensor) -> Tensor:
        """Run the drafter over a block that follows the committed tokens: embeddings [B, H] -> hidden states [B, H]
        after the final norm."""


def context_of(drafter: DFlashModel) -> BlockContext:
    """A new, empty context. It is made by ``drafter.make_context`` if that is set, otherwise it is a
    ``ModuleContext``."""
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
