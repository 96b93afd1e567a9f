"""What the two block-diffusion drafters share: one denoising step over a block of masks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.dflash_model import DFlashModel
from engine.language_model import LanguageModel
from engine.sampling import Sampling, display_distribution


class BlockReader:
    """Reads the target's hidden states as they come in and predicts a block at a time.

    The prefix is never read again: its keys and values are made once from the target's features
    and kept, a row a committed token.
    """

    def __init__(self, drafter: DFlashModel, target: LanguageModel) -> None:
        self._drafter = drafter
        self._target = target
        self._context: list[tuple[Tensor, Tensor]] | None = None
        self._length = 0

    @torch.no_grad()
    def read(self, features: Tensor) -> None:
        """Append committed tokens. features: [T, n*H]."""
        projected = self._drafter.project(features)
        positions = torch.arange(self._length, self._length + len(features))
        fresh = self._drafter.context_kv(projected, positions.to(features.device))
        if self._context is None:
            self._context = [(_Column(k), _Column(v)) for k, v in fresh]
        else:
            for (keys, values), (k, v) in zip(self._context, fresh, strict=True):
                keys.append(k)
                values.append(v)
        self._length += len(features)

    @torch.no_grad()
    def marginals(self, root: int, length: int, sampling: Sampling) -> Tensor:
        """q [length, V] for the tokens after the root, all at once and independent."""
        config = self._drafter.config
        tokens = [root] + [config.mask_token_id] * (config.block_size - 1)
        device = self._target.device
        block = self._target.embed(torch.tensor(tokens, device=device))
        positions = torch.arange(self._length, self._length + len(tokens), device=device)
        context = [(keys.rows, values.rows) for keys, values in self._context]
        hidden = self._drafter.forward_block(block, positions, context)
        logits = self._target.head(hidden[1 : length + 1])
        return display_distribution(logits, sampling).cpu()


class _Column:
    """A growing [Hkv, T, D] buffer; doubles, so that appending stays linear."""

    def __init__(self, rows: Tensor) -> None:
        self._buffer = rows
        self._used = rows.shape[1]

    @property
    def rows(self) -> Tensor:
        return self._buffer[:, : self._used]

    def append(self, rows: Tensor) -> None:
        end = self._used + rows.shape[1]
        if end > self._buffer.shape[1]:
            heads, _, width = rows.shape
            larger = rows.new_empty(heads, max(end, 2 * self._buffer.shape[1]), width)
            larger[:, : self._used] = self.rows
            self._buffer = larger
        self._buffer[:, self._used : end] = rows
        self._used = end


def usable_length(wanted: int, block_size: int, max_depth: int) -> int:
    """How many positions of the block are drafted: the root takes one of its rows."""
    return min(wanted, block_size - 1, max_depth)


def feature_layers(config) -> Sequence[int]:
    """Indices into hidden_states; DFlash counts layers, hidden_states begins with embeddings."""
    return tuple(layer + 1 for layer in config.target_layer_ids)
