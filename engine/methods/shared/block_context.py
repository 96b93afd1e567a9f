"""The text that a block-diffusion drafter has read, as keys and values, and the block that it fills after it."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from engine.methods.shared.dflash_model import DFlashModel


class BlockContext(ABC):
    """One instance serves one sequence. Shapes: T committed rows, B block rows, H hidden size, n feature layers."""

    @abstractmethod
    def read(self, features: Tensor) -> None:
        """Append committed rows. features: [T, n*H]."""

    @abstractmethod
    def denoise(self, embeddings: Tensor) -> Tensor:
        """Block rows [B, H] after the committed ones -> hidden [B, H] after the final norm."""


def context_of(drafter: DFlashModel) -> BlockContext:
    """A fresh context of the kind that ``engine.parts.opening`` picked for this drafter, else a plain one."""
    return (drafter.make_context or ModuleContext)(drafter)


class ModuleContext(BlockContext):
    """See ``BlockContext``."""

    def __init__(self, drafter: DFlashModel) -> None:
        self._drafter = drafter
        self._columns: list[tuple[Column, Column]] = []
        self._length = 0

    def read(self, features: Tensor) -> None:
        projected = self._drafter.project(features)
        fresh = self._drafter.context_kv(projected, self._places(len(features), features.device))
        if not self._columns:
            self._columns = [(Column(k), Column(v)) for k, v in fresh]
        else:
            for (keys, values), (k, v) in zip(self._columns, fresh, strict=True):
                keys.append(k)
                values.append(v)
        self._length += len(features)

    def denoise(self, embeddings: Tensor) -> Tensor:
        context = [(keys.rows, values.rows) for keys, values in self._columns]
        places = self._places(len(embeddings), embeddings.device)
        return self._drafter.forward_block(embeddings, places, context)

    def _places(self, count: int, device: torch.device) -> Tensor:
        return torch.arange(self._length, self._length + count, device=device)


class Column:
    """A growing [Hkv, T, D] buffer; doubles, so that appending stays linear."""

    def __init__(self, rows: Tensor) -> None:
        self._buffer = rows
        self._used = rows.shape[1]

    @property
    def rows(self) -> Tensor:
        return self._buffer[:, : self._used]

    def append(self, rows: Tensor) -> None:
        end = self._used + rows.shape[1]
        if end > self._buffer.shape[1]:
            heads, _, width = rows.shape
            larger = rows.new_empty(heads, max(end, 2 * self._buffer.shape[1]), width)
            larger[:, : self._used] = self.rows
            self._buffer = larger
        self._buffer[:, self._used : end] = rows
        self._used = end
