"""Drafts features of the text after a picture; text and patches enter the cell in different ways.

Lin et al., Speculative Decoding Reimagined for Multimodal Large Language Models (MSD, 2025). In a text, the pair of a
feature and the next token is informative. In a picture, whose next patch nobody has to guess, it is not. So at a patch
the input of the cell is the patch's embedding alone (``engine.methods.shared.picture_cell``). The tree is EAGLE-2's.
"""

import torch

from engine.methods.shared.cell_tree import CellTree
from engine.methods.shared.eagle_reader import EagleReader
from engine.model.captions import CaptionsModel


class MsdReader(EagleReader):
    def _read(self, states, tokens, expected):
        if isinstance(self._target, CaptionsModel):
            patches = [token in self._target.patch_tokens for token in tokens]
            at = torch.tensor(patches, device=states.device)
            states = states.masked_fill(at[:, None], 0.0)
        return super()._read(states, tokens, expected)


class MsdDrafter(CellTree):
    key = "msd"
    title = "Feature draft behind a picture, MSD"
    summary = "A small cell predicts the next features; patches of a picture come into it by a way of their own."
    needs = {"msd": "picture_cell"}

    def _open(self) -> None:
        start = self.start
        self._reader = MsdReader(
            self.cell, self.target, self.sampling, start.constraint, len(start.prompt)
        )
