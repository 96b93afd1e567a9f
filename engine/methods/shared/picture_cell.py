"""A cell with separate inputs for text and picture: where a row stands for a patch, its embedding is the whole input.

Lin et al., Speculative Decoding Reimagined for Multimodal Large Language Models (MSD, 2025). Everything else is an EAGLE cell.
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
        made = cls(cell.config, cell.pieces)
        made.load_state_dict(cell.state_dict())
        return made.to(cell.fc.weight).eval()

    def forward(self, states: Tensor, embedded: Tensor, turn, attend) -> Tensor:
        """A state of zeros says that the row stands for a patch."""
        pair = self.fc(torch.cat([embedded, states], -1))
        rows = torch.where((states == 0).all(-1, keepdim=True), embedded.to(pair.dtype), pair)
        for index, layer in enumerate(self.layers):
            rows = layer(rows, embedded, turn, partial(attend, index))
        return rows
