"""Keys and values of one text in an EAGLE cell, and the rows of a draft tree after them.

A row is a pair: the feature at a place and the token after it. Pairs with the target's own features are
committed and stay; drafted pairs follow them until the next pairs overwrite them. No step copies
anything of the text.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.parts.eagle_cell import EagleCell
from engine.target.cache import CAPACITY, KVCache

MOST_ROWS = 512  # of one pass over a prompt; bounds the mask


class EagleContext(ABC):
    """One instance serves one text. Shapes: R rows of this pass, S drafted rows before them, H hidden size."""

    length: int = 0
    """Number of committed pairs."""

    @abstractmethod
    def read(self, states: Tensor, embedded: Tensor) -> Tensor:
        """Commit pairs that follow the committed ones, states and embeddings [R, H]; drafted rows are
        forgotten. Returns the state [H] at the last pair's token."""

    @abstractmethod
    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Tensor:
        """Drafted pairs [R, H], all at one depth of the tree, 0 for the first after the text -> states
        [R, H]. seen: bool [R, S + R], the drafted rows that each row sees besides all committed ones;
        None: all of them."""


def context_of(cell: EagleCell) -> EagleContext:
    """A fresh context of the kind that ``engine.opening`` picked for this cell, else a plain one."""
    return (cell.make_context or ModuleContext)(cell)


class ModuleContext(EagleContext):
    """Makes passes through the module, in plain torch."""

    def __init__(self, cell: EagleCell) -> None:
        self._cell = cell
        self._cache = KVCache.empty(cell.config.num_hidden_layers, CAPACITY)
        self._drafted = 0

    @torch.no_grad()
    def read(self, states: Tensor, embedded: Tensor) -> Tensor:
        last = states[-1:]
        for start in range(0, len(states), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            rows = len(states[part])
            self._drafted = 0
            mask = None
            if rows > 1:
                mask = torch.ones(rows, self.length + rows, dtype=torch.bool, device=states.device)
                mask = mask.tril(self.length)
            places = torch.arange(self.length, self.length + rows, device=states.device)
            last = self._through(states[part], embedded[part], places, mask)[-1:]
            self.length += rows
        return last[0]

    @torch.no_grad()
    def grow(self, states: Tensor, embedded: Tensor, depth: int, seen: Tensor | None) -> Tensor:
        mask = None
        if seen is not None:
            rows, columns = seen.shape
            mask = torch.ones(rows, self.length + columns, dtype=torch.bool, device=states.device)
            mask[:, self.length :] = seen
        place = torch.full((len(states),), self.length + depth, device=states.device)
        found = self._through(states, embedded, place, mask)
        self._drafted += len(states)
        return found

    def _through(
        self, states: Tensor, embedded: Tensor, places: Tensor, mask: Tensor | None
    ) -> Tensor:
        begin = self.length + self._drafted
        self._cache.reserve(begin + len(states))
        self._cache.length = begin

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            keys, values = self._cache.layers[layer].update(keys[None], values[None])
            return F.scaled_dot_product_attention(
                queries[None], keys, values, attn_mask=mask, enable_gqa=True
            )[0]

        return self._cell(states, embedded, self._cell.turn(places), attend)
