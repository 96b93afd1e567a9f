"""The common part of the block-diffusion drafters: one denoising step over a block of masks."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from engine.core.finite import refuse_nan
from engine.core.sampling import Sampling, display_distribution
from engine.core.transfer import to_device
from engine.errors import UserError
from engine.methods.shared.block_context import context_of
from engine.methods.shared.dflash_model import DFlashModel
from engine.model.language_model import LanguageModel

EMPTY: Mapping[int, int] = MappingProxyType({})


class BlockReader:
    """Reads the target's hidden states as they come in and predicts a block at a time.

    The prefix is never read again: its keys and values are made once from the target's features and
    kept, one row per committed token.
    """

    def __init__(self, drafter: DFlashModel, target: LanguageModel) -> None:
        self.drafter, self._config = drafter, drafter.config
        self._head = drafter.head_beside(target)
        self.target = target
        self.context = context_of(drafter)
        self.passes = 0  # over a block, since the text began

    @torch.no_grad()
    def read(self, features: Tensor) -> None:
        """Append committed tokens. features: [T, n*H]."""
        self.context.read(features)

    @torch.no_grad()
    def marginals(
        self, root: int, length: int, sampling: Sampling, filled: Mapping[int, int] = EMPTY
    ) -> Tensor:
        """q [length, V], on the target's device, for the tokens after the root, predicted all at
        once and independently. filled: the tokens that are already known, by place; place 0 is
        right behind the root."""
        return display_distribution(self.guesses(root, length, filled)[1], sampling)

    @torch.no_grad()
    def guesses(
        self, root: int, length: int, filled: Mapping[int, int] = EMPTY
    ) -> tuple[Tensor, Tensor]:
        """The prediction of ``marginals`` before temperature and truncation: hidden states [length, H], logits [length, V]."""
        first = self._config.first_row
        hidden = self.denoise(root, filled)[first : first + length]
        return hidden, self._head(hidden)

    def denoise(self, root: int, filled: Mapping[int, int] = EMPTY) -> Tensor:
        """Hidden states [B, H] of the block behind the committed tokens."""
        block = self.block(root)
        if filled and not self._config.first_row:
            raise UserError(
                "This diffusion drafter guesses a block in one pass and fills no masks."
            )
        for place, token in filled.items():
            block[place + 1] = token
        tokens = to_device(torch.tensor(self.target.readable(block)), self.target.device)
        hidden = self.context.denoise(self.target.embed(tokens))
        self.passes += 1
        if not self.target.asynchronous:
            refuse_nan(hidden, "The diffusion drafter")
        return hidden

    def block(self, root: int) -> list[int]:
        """The root, and a mask for each token to be filled in."""
        masks = [self._config.mask_token_id] * (self._config.block_size - 1)
        return [*self.target.readable([root]), *masks]


def feature_layers(config) -> Sequence[int]:
    """Indices into hidden_states. DFlash counts layers; hidden_states begins with embeddings."""
    return tuple(layer + 1 for layer in config.target_layer_ids)
