"""An EAGLE cell with another input for rows of a picture: a row that stands for a patch enters as its embedding alone.

Lin et al., Speculative Decoding Reimagined for Multimodal Large Language Models (MSD, 2025). All else is as in EAGLE.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from engine.methods.shared.eagle_cell import EagleCell


class PictureCell(EagleCell):
    @classmethod
    def of(cls, cell: EagleCell) -> PictureCell:
        """A picture cell with the weights of ``cell``."""
        picture_cell = cls(cell.config, cell.pieces)
        picture_cell.load_state_dict(cell.state_dict())
        return picture_cell.to(cell.fc.weight).eval()

    def forward(self, states: Tensor, embedded: Tensor, turn, attend) -> Tensor:
        """Like ``EagleCell.forward``, but a row whose state is all zeros stands for a patch of the picture, and only
        its embedding is read."""
        pair = self.fc(torch.cat([embedded, states], -1))
        rows = torch.where((states == 0).all(-1, keepdim=True), embedded.to(pair.dtype), pair)
        for index, layer in enumerate(self.layers):
            rows = layer(rows, embedded, turn, partial(attend, index))
        return rows
