"""The filter of Learn2PD: it tells from the confidences of a block whether each place is already right.

Bao et al., "Learning to Parallel: Accelerating Diffusion Large Language Models via Learnable Parallel Decoding" (2025):
two linear layers, about two thousand numbers for a block of 32. A filter belongs to a target, and to the diffusion
drafter whose confidences it has learned from. Weights: ``fc1.{weight,bias}`` [H, L], [H] and ``fc2.{weight,bias}``
[L, H], [L].
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.dflash_model import DFlashModel
from engine.parts.digest import digest_of
from engine.parts.module_part import ModulePart

DENOISER = "draftscope_denoiser"
"""The entry of the config that holds the digest of the diffusion drafter whose confidences the filter reads."""


class UnmaskingFilter(ModulePart):
    """places: L, those of a block after its root. denoiser_digest: None if the config names none."""

    key, noun, reads_states = "unmasking_filter", "unmasking filter", False

    def __init__(self, places: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(places, hidden)
        self.fc2 = nn.Linear(hidden, places)
        self.denoiser_digest: str | None = None

    @classmethod
    def of_files(cls, config, tensors, target):
        first = tensors.get("fc1.weight")
        if first is None or first.ndim != 2:
            raise ValueError("its first layer is missing")
        return cls(first.shape[1], first.shape[0])

    def settle(self, config, target, folder):
        named = config.get(DENOISER)
        self.denoiser_digest = named if isinstance(named, str) else None

    def fields(self):
        sizes = {"places": self.places, "hidden_size": self.fc1.out_features}
        return {**sizes, DENOISER: self.denoiser_digest}

    @classmethod
    def tiny(cls, target, opener=None):
        """A filter for the tiny denoiser. It looks at all places: its chances vary with the block."""
        made = cls(DFlashModel.tiny(target, opener).config.block_size - 1, 4)
        for weight in made.parameters():
            weight.data.normal_(0, 2)
        return made.eval().requires_grad_(False)

    @property
    def places(self) -> int:
        return self.fc1.in_features

    def forward(self, confidences: Tensor) -> Tensor:
        """confidences [..., L], 1 where a place is filled -> log-odds [..., L] that its token is the final one"""
        return self.fc2(F.relu(self.fc1(confidences)))

    @torch.no_grad()
    def chance(self, confidences: Tensor) -> Tensor:
        """The chance that each place of a canvas, which may be shorter than the block, is right. [l] -> [l]"""
        length = len(confidences)
        whole = F.pad(confidences.to(self.fc1.weight), (0, self.places - length))
        return self(whole)[:length].sigmoid()


def reading(values: Tensor, filled: Tensor) -> Tensor:
    """The filter's input: the probabilities [..., L] of the likeliest tokens, 1 where a place is filled."""
    return torch.where(filled, 1.0, values.float())


def check_denoiser(part: UnmaskingFilter, places: int, folder: str | None) -> None:
    """Raises UserError if the filter has learned from a diffusion drafter other than this one."""
    known = folder is not None and Path(folder).is_dir() and part.denoiser_digest is not None
    other = known and digest_of(folder) != part.denoiser_digest
    if other or part.places != places:
        raise UserError("The unmasking filter was trained for another diffusion drafter.")


KIND = UnmaskingFilter.kind()
