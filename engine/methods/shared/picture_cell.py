"""An EAGLE cell that treats the rows of a picture differently: for a row that stands for a patch, its input is the
row's embedding alone.

Lin et al., Speculative Decoding Reimagined for Multimodal Large Language Models (MSD, 2025). In all other respects the
cell is that of EAGLE.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from engine.methods.shared.eagle_cell import EagleCell


class PictureCell(EagleCell):
    @classmethod
    def of(cls, cell: EagleCell) -> PictureCell:
        """Return a picture cell with the weights of ``cell``."""
        picture_cell = cls(cell.config, cell.pieces)
        picture_cell.load_state_dict(cell.state_dict())
        return picture_cell.to(cell.fc.weight).eval()

    def forward(self, states: Tensor, embedded: Tensor, turn, attend) -> Tensor:
        """Like ``EagleCell.forward``; but if the state of a row is all zeros, the row stands for a patch of the
        picture, and only the row's embedding is used."""
        pair = self.fc(torch.cat([embedded, states], -1))
        rows = torch.where((states == 0).all(-1, keepdim=True), embedded.to(pair.dtype), pair)
        for index, layer in enumerate(self.layers):
            rows = layer(rows, embedded, turn, partial(attend, index))
        return rows
