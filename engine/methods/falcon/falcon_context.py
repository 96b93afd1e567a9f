"""One text in a Falcon cell: the keys and values of the text so far, and of the drafted blocks after it."""

import torch
from torch import Tensor

from engine.methods.falcon.part import FalconCell, Memory
from engine.methods.shared.module_columns import ModuleColumns

MOST_ROWS = 512  # most rows of one pass over a prompt


class FalconContext:
    """One text in the cell, as pairs of a feature and the token after it. It holds the keys and values of the committed
    pairs, the LSTM's memory after them, and the drafted blocks that follow; these blocks are dropped when more pairs
    are committed.

    length: the number of committed pairs. Drafted blocks are numbered from 0, in the order in which ``grow`` got them.
    """

    def __init__(self, cell: FalconCell) -> None:
        self._cell, self.length = cell, 0
        self._columns = ModuleColumns.of(1)
        self._memory: Memory | None = None
        self._tail: Tensor | None = None  # rows of the last block, which the next pass runs again

    @torch.no_grad()
    def read(self, states: Tensor, embedded: Tensor) -> Tensor | None:
        """Commit R pairs: features [R, H] and the embeddings [R, H] of the tokens after them. Returns the states [k, H]
        of the next block, or None while there are fewer than k pairs. The first of these states stands for the feature
        at the last pair's token."""
        size, ahead = self._cell.block_size, None
        for start in range(0, len(states), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            fresh, self._memory = self._cell.listen(
                states[None, part], embedded[None, part], self._memory
            )
            count = fresh.shape[1]
            all_rows = fresh[0] if self._tail is None else torch.cat([self._tail, fresh[0]])
            rows = all_rows[-max(size, count) :]
            end = self.length + count
            places = torch.arange(end - len(rows), end, device=states.device)
            ahead = self._through(rows, places, self.length, count, None)[-size:]
            self._tail, self.length = all_rows[-size:], end
        self._blocks: list[Memory] = []
        return ahead if ahead is not None and len(ahead) == size else None

    @torch.no_grad()
    def grow(
        self, states: Tensor, embedded: Tensor, parents: list[int], depth: int, seen: Tensor
    ) -> Tensor:
        """Run the cell over B drafted blocks of pairs, [B, k, H], all at one depth (0: right after the text). Returns
        the states [B, k, H] of the blocks after them.

        parents: for each block, the number of the block before it, or -1 for the text. seen: bool [B, S + B], to which
        blocks each block attends, itself included; S is the number of blocks drafted before this call.
        """
        size, blocks = self._cell.block_size, len(states)
        before = [self._memory if parent < 0 else self._blocks[parent] for parent in parents]
        memory = tuple(torch.cat([block[part] for block in before], 1) for part in (0, 1))
        rows, (hidden, inner) = self._cell.listen(states, embedded, memory)
        drafted = size * len(self._blocks)
        self._blocks += zip(hidden.split(1, 1), inner.split(1, 1), strict=True)
        first = self.length + depth * size
        places = torch.arange(first, first + size, device=states.device).repeat(blocks)
        wide = seen.to(states.device).repeat_interleave(size, 0).repeat_interleave(size, 1)
        mask = wide.new_ones(len(wide), self.length + wide.shape[1])
        mask[:, self.length :] = wide
        ahead = self._through(
            rows.flatten(0, 1), places, self.length + drafted, blocks * size, mask
        )
        return ahead.unflatten(0, (blocks, size))

    def _through(
        self, rows: Tensor, places: Tensor, begin: int, fresh: int, mask: Tensor | None
    ) -> Tensor:
        """Run the cell's attention layer over these rows. The keys and values of the last ``fresh`` rows are new; they
        are stored from column ``begin`` on. mask: which columns each row sees; None if all rows see all columns."""
        attend = self._columns.attention(begin, fresh, mask)

        def attend_fresh(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            return attend(0, queries, keys[:, -fresh:], values[:, -fresh:])

        return self._cell(rows, self._cell.turn(places), attend_fresh)
