"""Passes in which the rows of a model see only a part of a session's columns, or substitutes for these columns.

The session reads a text as it always does. A view holds, for each layer, keys and values that a drafter has chosen from
the session's columns, and runs rows that see these instead of all columns. The session does not change unless it takes
the view's rows in (``Session.take_in``). Layers with a sliding window see few columns anyway, so a view holds all
columns of these layers.

Letters in shapes: R rows of a pass, H query heads, Hkv key-value heads, D head size, T columns of the session, C
columns of a view.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.core.threads import ALL, torch_threads
from engine.errors import UserError
from engine.model.by_length import ByLengthModel
from engine.model.cache import KVCache, KVLayer
from engine.model.forward import forward
from engine.model.hybrid import HybridModel
from engine.model.language_model import LanguageModel
from engine.model.own_attention import ChainModel, MaskedModel, no_layers
from engine.model.row_mask import RowMask
from engine.model.session import Session

MARGIN = 128  # columns for which a view has room behind its first columns

Watch = Callable[[int, Tensor, Tensor], None]
"""A function that every layer of a pass calls with its index, the rows' scaled queries [1, H, R, D], and all keys
[1, Hkv, T, D]."""
Chosen = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""A function from a layer's index, keys and values [1, Hkv, T, D] to the keys and values [1, Hkv, C, D] that a view
holds instead. C, the number of chosen columns, is the same in all layers."""


def check_views(model: LanguageModel) -> None:
    """Raise UserError if no view can be made of this model's sessions."""
    if isinstance(model, HybridModel):
        raise UserError(
            f"{model.name} keeps a recurrent state, of which no part can be left out, so it cannot read a part of its cache."
        )
    if isinstance(model, MaskedModel | ChainModel | ByLengthModel):
        raise no_layers(model.name)


def windowed_layers(model: LanguageModel) -> frozenset[int]:
    """The indices of the layers that have a sliding window, or any other kind of attention that is not full."""
    config = model.model.config.get_text_config(decoder=True)
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        windowed = getattr(config, "sliding_window", None) is not None
        return frozenset(range(model.layers) if windowed else ())
    return frozenset(layer for layer, kind in enumerate(kinds) if kind != "full_attention")


class CacheView:
    """Runs a chain of rows after columns that were chosen from a session's columns.

    rows: the number of rows that were run since the last ``take``. reduced: the layers in which the rows see only the
    chosen columns; all other layers have a window.
    """

    def __init__(self, session: Session, watch: Watch | None) -> None:
        """watch: every pass calls it in each layer. If it is None, passes may be compiled."""
        self._session, self._watch = session, watch
        self._model = session.model
        layers = range(self._model.layers)
        self.reduced = [layer for layer in layers if layer not in windowed_layers(self._model)]
        self._compiled = False
        self._cache: KVCache | None = None
        self._held = [0] * len(layers)  # columns of each layer before the rows
        self._taken = 0  # columns of the session that the view represents
        self.rows = 0

    @torch.no_grad()
    def take(self, chosen: Chosen | None) -> None:
        """Forget all rows of the chain, and stand for all tokens that the session has committed. chosen: chooses the
        columns of the reduced layers anew. If it is None, the columns chosen earlier stay, and all columns that the
        session has committed since then are added after them."""
        for index in range(self._model.layers):
            keys, values = self._session.columns(index)
            again = chosen is not None and index in self.reduced
            held = 0 if again else self._held[index]
            if again:
                keys, values = chosen(index, keys, values)
            else:
                keys, values = keys[:, :, self._taken :], values[:, :, self._taken :]
            layer = self._with_room(held + keys.shape[2]).layers[index]
            layer.length = held
            layer.update(keys, values)
            self._held[index] = layer.length
        self._taken, self.rows = self._session.length, 0

    def _with_room(self, columns: int) -> KVCache:
        """The view's own cache, with room for ``columns`` columns."""
        if self._cache is None:
            layers, compiled_columns = self._model.layers, None
            if self._watch is None and len(self.reduced) == layers:
                compiled_columns = self._model.view_columns(columns + MARGIN)
            self._compiled = compiled_columns is not None
            self._cache = (
                compiled_columns if self._compiled else KVCache.empty(layers, columns + MARGIN)
            )
        self._cache.reserve(columns)
        return self._cache

    @property
    def columns(self) -> list[tuple[Tensor, Tensor]]:
        """The keys and values of the rows, [1, Hkv, R, D] each, by layer. They are tensor views of the cache, valid
        until the next call."""
        ends = [(held, held + self.rows) for held in self._held]
        return [
            (layer.keys[:, :, first:end], layer.values[:, :, first:end])
            for (first, end), layer in zip(ends, self._cache.layers, strict=True)
        ]

    @torch.no_grad()
    def feed(self, tokens: Sequence[int]) -> Tensor:
        """Run R tokens that continue the chain of rows; returns their logits [R, V]."""
        for held, layer in zip(self._held, self._cache.layers, strict=True):
            layer.length = held + self.rows
        self._cache.reserve(max(self._held) + self.rows + len(tokens))
        columns = self._held[self.reduced[0]] if self.reduced else self._taken
        before, self.rows = self.rows, self.rows + len(tokens)
        mask = _ViewMask(columns, self._taken, before, len(tokens), self._model.device)
        if self._compiled:
            return self._model.read_view(tokens, mask.chosen, self._cache)
        return _passed(self._model, tokens, mask, self._cache, self._watch)


@torch.no_grad()
def read_again(session: Session, tokens: Sequence[int], first: int, watch: Watch) -> None:
    """Run a chain of tokens once more, after the first ``first`` columns of the session, so that ``watch`` sees their
    queries. The tokens may be a part of the session's text or go beyond it. The session does not change."""
    layers = [_Behind(*session.columns(index), first) for index in range(session.model.layers)]
    mask = _ViewMask(first, first, 0, len(tokens), session.model.device)
    _passed(session.model, tokens, mask, KVCache(layers), watch)


def _passed(
    model: LanguageModel, tokens, mask: "_ViewMask", cache: KVCache, watch: Watch | None
) -> Tensor:
    watch = watch or (lambda *_: None)  # a watched pass takes any mask, on a GPU too
    readable = torch.tensor([model.readable(tokens)], device=model.device)
    # a compiled model leaves torch one thread, too few for passes of its module
    with torch_threads(ALL if model.torch_threads else None):
        logits, _ = forward(
            model.model, readable, mask.row_positions[None], mask, cache, (), watch=watch
        )
    return logits[0]


class _ViewMask:
    """The mask of R rows of a chain. All layers see the chain; before it, layers with a window have all columns of the
    text, and the other layers only the chosen columns. columns: the number of chosen columns. length: the number of
    tokens in the text. before: how many rows of the chain were run in earlier passes. count: R."""

    def __init__(
        self, columns: int, length: int, before: int, count: int, device: torch.device
    ) -> None:
        depths = list(range(before + count))
        ancestors = [(2 << row) - 1 for row in depths[before:]]
        self.chosen = RowMask(columns, depths, ancestors, device, length)
        self._whole = RowMask(length, depths, ancestors, device)

    @property
    def row_positions(self) -> Tensor:
        return self._whole.row_positions

    def within(self, window: int | None) -> Tensor | None:
        return self.chosen.visible if window is None else self._whole.within(window)


class _Behind(KVLayer):
    """A cache layer that shows the first columns of another cache layer and, after them, the rows of the current pass,
    which it does not store."""

    def __init__(self, keys: Tensor, values: Tensor, first: int) -> None:
        super().__init__(first)
        self._before = keys[:, :, :first], values[:, :, :first]
        self.length = first

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        keys, values = self._before
        return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)
