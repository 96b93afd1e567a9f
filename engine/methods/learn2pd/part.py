"""The filter of Learn2PD: it predicts from the confidences of a block whether each place is already right.

Bao et al., "Learning to Parallel: Accelerating Diffusion Large Language Models via Learnable Parallel Decoding" (2025):
two linear layers, about two thousand numbers for a block of 32. A filter belongs to a target, and to the diffusion
drafter from whose confidences it has learned. Weights: ``fc1.{weight,bias}`` [H, L], [H] and ``fc2.{weight,bias}`` [L,
H], [L].
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
    """The filter. places: L, the number of places of a block after its root. denoiser_digest: the digest of the
    filter's diffusion drafter, or None if the config has none."""

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
        """Return a filter for the tiny denoiser. Its weights use the confidences of all places, so its predictions vary
        with the block."""
        part = cls(DFlashModel.tiny(target, opener).config.block_size - 1, 4)
        for weight in part.parameters():
            weight.data.normal_(0, 2)
        return part.eval().requires_grad_(False)

    @property
    def places(self) -> int:
        return self.fc1.in_features

    def forward(self, confidences: Tensor) -> Tensor:
        """Map confidences [..., L], which are 1 at filled places, to the log-odds [..., L] that a place's token is the
        final one."""
        return self.fc2(F.relu(self.fc1(confidences)))

    @torch.no_grad()
    def chance(self, confidences: Tensor) -> Tensor:
        """Return the chance [l] that each place of a canvas is right. confidences: [l]; a canvas, the block that is
        being filled, may be shorter than the filter's L places."""
        length = len(confidences)
        whole = F.pad(confidences.to(self.fc1.weight), (0, self.places - length))
        return self(whole)[:length].sigmoid()


def reading(values: Tensor, filled: Tensor) -> Tensor:
    """Return the filter's input [..., L]: the probability of each place's likeliest token, or 1 where the place is
    filled."""
    return torch.where(filled, 1.0, values.float())


def check_denoiser(part: UnmaskingFilter, places: int, folder: str | None) -> None:
    """Raise UserError if the filter has learned from another diffusion drafter than the one in ``folder``, or for
    blocks of another size."""
    comparable = folder is not None and Path(folder).is_dir() and part.denoiser_digest is not None
    differs = comparable and digest_of(folder) != part.denoiser_digest
    if differs or part.places != places:
        raise UserError("The unmasking filter was trained for another diffusion drafter.")


KIND = UnmaskingFilter.kind()
