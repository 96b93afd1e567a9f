"""The reader that all block-diffusion drafters share: it runs one denoising pass over a block, the root and masks after
it."""

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
    """Takes the target's hidden states of committed tokens, and predicts the next block of tokens in one pass.

    The keys and values of a committed token are computed once from the target's hidden states, and stay in ``context``.
    """

    def __init__(self, drafter: DFlashModel, target: LanguageModel) -> None:
        self.drafter, self._config = drafter, drafter.config
        self._head = drafter.head_beside(target)
        self.target = target
        self.context = context_of(drafter)
        self.passes = 0  # passes over a block since the text began

    @torch.no_grad()
    def read(self, features: Tensor) -> None:
        """Append committed tokens to the context. features: the target's hidden states [T, n*H] at these tokens."""
        self.context.read(features)

    @torch.no_grad()
    def marginals(
        self, root: int, length: int, sampling: Sampling, filled: Mapping[int, int] = EMPTY
    ) -> Tensor:
        """Return the marginals q [length, V] of the next ``length`` tokens after the root, predicted in one pass, on
        the target's device. filled: position in the block -> token, for positions that have a token instead of a mask;
        position 0 is the first after the root."""
        return display_distribution(self.guesses(root, length, filled)[1], sampling)

    @torch.no_grad()
    def guesses(
        self, root: int, length: int, filled: Mapping[int, int] = EMPTY
    ) -> tuple[Tensor, Tensor]:
        """The hidden states [length, H] and logits [length, V] from which ``marginals`` are computed, before
        temperature and truncation."""
        first = self._config.first_row
        hidden = self.denoise(root, filled)[first : first + length]
        return hidden, self._head(hidden)

    def denoise(self, root: int, filled: Mapping[int, int] = EMPTY) -> Tensor:
        """Return the hidden states [B, H] of the block that follows the committed tokens. filled: see ``marginals``.
        Raises UserError for NaN, and if ``filled`` has tokens although this drafter cannot take tokens in place of
        masks."""
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
        """The block's B tokens: the root, and B - 1 masks."""
        masks = [self._config.mask_token_id] * (self._config.block_size - 1)
        return [*self.target.readable([root]), *masks]


def feature_layers(config) -> Sequence[int]:
    """Return the indices of the target's hidden_states that a block drafter takes. DFlash's config has indices of
    layers; hidden_states begins with the embeddings, so each index here is larger by 1."""
    return tuple(layer + 1 for layer in config.target_layer_ids)
