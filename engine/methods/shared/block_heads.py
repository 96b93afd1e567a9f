"""Shared by heads on a block drafter's last hidden states: the drafter that they belong to, and how they are opened
beside it, from a folder of their own or from a published one that holds both."""

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
"""The entry of a config that holds the digest of the block drafter whose states the heads read."""


class BlockHeads(ModulePart):
    """denoiser_digest: None if the config names none."""

    published: ClassVar[Mapping[str, str]]
    """Published name of each tensor -> its name here; those of optional heads may be missing."""

    denoiser_digest: str | None = None

    @classmethod
    def tensors_of(cls, config, tensors):
        beside = (*BACKBONE, *BORROWED)  # of the block drafter, which a folder may hold as well
        return {name: each for name, each in tensors.items() if not name.startswith(beside)}

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
        """Raises UserError, one sentence, if the heads do not fit this block drafter, or were trained for another one.
        folder: where it was opened, None if it was not."""
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
        """Numbers of a state, tokens of the target, and how many of them are drafted."""
        raise NotImplementedError


def shape_of(tensors: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    """Rows and columns of a matrix. Raises ValueError, whose message ends a sentence."""
    found = tensors.get(name)
    if found is None or found.ndim != 2:
        raise ValueError(f"{name} is missing, or no matrix")
    return tuple(found.shape)


def normal(module: nn.Module, size: float) -> nn.Module:
    """The module with random weights of this size, frozen."""
    for weight in module.parameters():
        weight.data.normal_(0, size)
    return module.eval().requires_grad_(False)
