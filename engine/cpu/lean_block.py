"""A lean forward of the block-diffusion drafter on a CPU, over the weights of its module.

Its layers are blocks of the Llama class (``engine.cpu.lean_layer``) with norms on q and k. Only what
they look at differs: keys and values of the committed text come from the target's features, not
from rows of the block, and within the block every row sees every other.

Letters in shapes: T context rows, B block rows, H hidden size, n feature layers.
"""

import torch
from torch import Tensor

from engine.cpu.lean_cache import LeanCache
from engine.cpu.lean_layer import Layer, Norm, Projection, Rotary
from engine.cpu.lean_order import order
from engine.parts.dflash_model import DFlashModel, rotary


class LeanBlock:
    """The two forwards of one drafter. Building it moves the module's weights."""

    def __init__(self, model: DFlashModel) -> None:
        self._config = model.config
        self._order = order()
        self._project = Projection.of(model.fc)
        self._feature_norm = Norm(model.hidden_norm)
        self._layers = [Layer(layer) for layer in model.layers]
        self._norm = Norm(model.norm)
        self._cosine = self._sine = model.norm.weight.new_empty(0)

    def cache(self, capacity: int) -> LeanCache:
        return LeanCache.empty(len(self._layers), self._layers[0], capacity, self._norm.weight)

    def read(self, features: Tensor, cache: LeanCache) -> None:
        """Append committed rows to the context. features: [T, n*H]."""
        count = len(features)
        cache.reserve(cache.length + count)
        rows = self._feature_norm.laid(self._project(self._order.lay(features)))
        turn = self._rotary(cache.length, count)
        for index, layer in enumerate(self._layers):
            cache.write(index, layer.keys_values(rows, turn))
        cache.length += count

    def denoise(self, embeddings: Tensor, cache: LeanCache) -> Tensor:
        """Block rows [B, H] behind the context -> hidden [B, H] after the final norm.

        The context stays as it is: the block's own keys and values are scratch.
        """
        count = len(embeddings)
        cache.reserve(cache.length + count)
        hidden = self._order.lay(embeddings.clone())
        turn = self._rotary(cache.length, count)
        for index, layer in enumerate(self._layers):
            layer.attend(hidden, turn, None, cache, index)
            layer.feed_forward(hidden)
        return self._order.as_rows(self._norm.laid(hidden))

    def _rotary(self, first: int, count: int) -> Rotary:
        last = first + count
        if last >= len(self._cosine):  # also before the first row, when there is no table
            positions = torch.arange(max(2 * last, 256))
            size, theta = self._config.head_dim, self._config.rope_theta
            self._cosine, self._sine = rotary(positions, size, theta, self._norm.weight.dtype)
            self._sine[:, : size // 2].neg_()
        return self._cosine[first:last], self._sine[first:last]
