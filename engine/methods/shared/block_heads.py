"""Base class of heads whose input is a block drafter's last hidden states.

Such heads are opened together with their block drafter. Their files lie in a folder of their own, or in a published
folder that also holds the block drafter.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn

from engine.errors import UserError
from engine.methods.shared.dflash_layout import BACKBONE, BORROWED
from engine.methods.shared.dflash_model import DFlashModel
from engine.parts.digest import digest_of
from engine.parts.module_part import ModulePart

DENOISER = "draftscope_denoiser"
"""The entry of the heads' config that holds the digest of the block drafter for which the heads were trained."""


class BlockHeads(ModulePart):
    """Heads on top of a block drafter. denoiser_digest: the digest of the block drafter for which the heads were
    trained; None if the config of the heads does not name it."""

    published: ClassVar[Mapping[str, str]]
    """The name of a tensor in published files -> its name in this module. A published folder may lack the tensors of
    optional heads."""

    denoiser_digest: str | None = None

    @classmethod
    def tensors_of(cls, config, tensors):
        beside = (*BACKBONE, *BORROWED)  # the block drafter's, which may lie in the same folder
        return {name: tensor for name, tensor in tensors.items() if not name.startswith(beside)}

    def names(self):
        own = self.state_dict()
        return {name: mine for name, mine in self.published.items() if mine in own}

    def settle(self, config, target, folder):
        named = config.get(DENOISER)
        self.denoiser_digest = named if isinstance(named, str) else None
        hidden, tokens, _ = self.sizes()
        if target is not None and (hidden, tokens) != (target.hidden_size, target.vocab_size):
            raise ValueError(f"it reads states of {hidden:,} numbers and knows {tokens:,} tokens")

    def check(self, denoiser: DFlashModel, folder: str | None) -> None:
        """Raise UserError if the heads do not fit this block drafter, or were trained for another block drafter.
        folder: the folder from which the block drafter was opened; None if there was no folder."""
        sizes, own = denoiser.config, self.sizes()
        drafted = sizes.draft_vocab_size or sizes.vocab_size
        needed = (sizes.hidden_size, sizes.vocab_size, drafted)
        if own != needed:
            raise UserError(
                f"The {self.noun} reads states of {own[0]:,} numbers and drafts {own[2]:,} of {own[1]:,} tokens; the diffusion "
                f"drafter has {needed[0]:,}, {needed[2]:,} and {needed[1]:,}."
            )
        here = digest_of(folder) if folder is not None and Path(folder).is_dir() else None
        if None not in (here, self.denoiser_digest) and here != self.denoiser_digest:
            raise UserError(f"The {self.noun} was trained for another diffusion drafter.")

    def sizes(self) -> tuple[int, int, int]:
        """Return three sizes: the hidden size of the states that the heads take, the size of the target's vocabulary,
        and how many tokens of this vocabulary can be drafted."""
        raise NotImplementedError


def shape_of(tensors: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of the matrix ``name``. Raises ValueError if the matrix is missing, or if
    the tensor of this name is not a matrix."""
    matrix = tensors.get(name)
    if matrix is None or matrix.ndim != 2:
        raise ValueError(f"{name} is missing, or no matrix")
    return tuple(matrix.shape)


def normal(module: nn.Module, size: float) -> nn.Module:
    """Fill the module with normal random weights of standard deviation ``size``, freeze it and return it."""
    for weight in module.parameters():
        weight.data.normal_(0, size)
    return module.eval().requires_grad_(False)
