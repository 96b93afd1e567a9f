"""Models whose rotary frequencies depend on the length of the text: ``longrope`` and ``dynamic``.

Their modules take the length from the highest position in a pass. In plain decoding a pass has one row, so each row is
computed for a text that ends with this row, and all rows of a prompt are computed for the length of the whole prompt.
The classes here do the same in every pass, even if the pass contains rows for other lengths. Models of the Phi-3 kind
also compute all columns of a text anew once it is longer than the texts of their original training.
"""

from collections.abc import Sequence
from contextlib import contextmanager
from threading import local

import torch
from torch import Tensor, nn

from engine.model.cache import KVCache
from engine.model.language_model import LanguageModel
from engine.model.layers import Passed
from engine.model.row_mask import RowMask
from engine.model.rows import Rows
from engine.model.session import Session

_BY_LENGTH = ("dynamic", "longrope")
_READ_ANEW = ("Phi3ForCausalLM", "PhimoeForCausalLM", "Phi4MultimodalForCausalLM")


def reads_by_length(module: nn.Module) -> bool:
    """Whether a rotary embedding of this module depends on the length of the text."""
    return any(True for _ in _rotaries(module))


def _rotaries(module: nn.Module):
    for part in module.modules():
        kinds = getattr(part, "rope_type", None)
        kinds = kinds.values() if isinstance(kinds, dict) else [kinds]
        if any(kind in _BY_LENGTH for kind in kinds) and hasattr(part, "config"):
            yield part


def _growth(module: nn.Module) -> float:
    """The factor by which a text may exceed the length that the module's configuration names."""
    config = module.config.get_text_config(decoder=True)
    rope = getattr(config, "rope_parameters", None) or {}
    return rope.get("factor", 1.0) if rope.get("rope_type") == "dynamic" else 1.0


class ByLengthModel(LanguageModel):
    """A language model that computes each row with the rotary frequencies of a text of a chosen length
    (``lengths``)."""

    holds_branches = False

    def __init__(self, model, tokenizer, name: str) -> None:
        super().__init__(model, tokenizer, name)
        self._current = local()
        for rotary in _rotaries(model):
            rotary.forward = _RowsAlone(rotary.forward, self._current)
        self.max_context = int(self.max_context * _growth(model))
        self._edge = None
        if type(model).__name__ in _READ_ANEW:
            self._edge = getattr(self.model.config, "original_max_position_embeddings", None)

    def uncompiled(self, module) -> LanguageModel:
        return self.reopened(module)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        cache = KVCache.empty(self.cache_layers, capacity)
        if self._edge is None:
            return ByLengthSession(self, cache, tuple(features))
        return AnewSession(self, cache, tuple(features), self._edge)

    @contextmanager
    def lengths(self, lengths: Tensor):
        """Within this context, row r of a pass gets the rotary frequencies of a text of lengths[r] tokens. lengths:
        [R], for the R rows of the pass."""
        self._current.lengths = lengths
        try:
            yield
        finally:
            self._current.lengths = None


class _RowsAlone:
    """Takes the place of a rotary embedding's forward, and calls that forward once for each text length that occurs in
    the pass."""

    def __init__(self, forward, current: local) -> None:
        self._forward = forward
        self._current = current

    def __call__(self, x: Tensor, position_ids: Tensor, *others, **named) -> tuple[Tensor, ...]:
        lengths = getattr(self._current, "lengths", None)
        if lengths is None:
            return self._forward(x, position_ids, *others, **named)
        wholes: list[Tensor] | None = None
        for length in lengths.unique().tolist():
            # a call with only position 0 makes a ``dynamic`` embedding forget the longest text it has seen
            self._forward(x, position_ids.new_zeros(1, 1), *others, **named)
            rows = (lengths == length).nonzero()[:, 0]
            last = position_ids.new_full((1, 1), length - 1)
            # no row may lie beyond the end of its text; the result of such a row is never used
            own = position_ids[:, rows].clamp(max=length - 1)
            places = torch.cat([own, last], -1)
            parts = [part[:, :-1] for part in self._forward(x, places, *others, **named)]
            if wholes is None:
                shape = (1, len(lengths), parts[0].shape[-1])
                wholes = [part.new_empty(shape) for part in parts]
            for whole, part in zip(wholes, parts, strict=True):
                whole[:, rows] = part
        return tuple(wholes)


class ByLengthSession(Session):
    """A ``Session`` that computes each row as the last row of its own text, but the rows of a prompt for the length of
    the whole prompt."""

    reads_parts = False
    _whole: int | None = None  # length of the text whose prompt is being read

    @torch.no_grad()
    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        if self.length == 0:
            self._whole = len(tokens) + 1  # the root belongs to the prompt
        try:
            return super().prefill(tokens, layers, last)
        finally:
            self._whole = None

    def _lengths(self, mask: RowMask) -> Tensor:
        own = mask.row_positions + 1
        return own if self._whole is None else own.clamp(min=self._whole)

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        with self.model.lengths(self._lengths(mask)):
            return super()._forward(inputs, mask, features, last)

    def _through(self, inputs: Tensor, tokens: Tensor, mask: RowMask, *how) -> Passed:
        with self.model.lengths(self._lengths(mask)):
            return super()._through(inputs, tokens, mask, *how)


class AnewSession(ByLengthSession):
    """A session that computes its columns anew when a text crosses the length ``edge``: when a row's text is longer
    than ``edge`` tokens but the cached columns were computed for a shorter text, or the other way round. A pass with
    rows on both sides of the edge is run twice."""

    def __init__(self, model, cache: KVCache, features: tuple[int, ...], edge: int) -> None:
        self._edge = edge
        self._text: list[int] = []  # tokens of the committed columns
        self._scratch: list[int] = []
        self._beyond = False  # whether the columns were read as part of a text beyond the edge
        super().__init__(model, cache, features)

    def take_over(self, other: Session, length: int) -> None:
        super().take_over(other, length)
        self._text, self._beyond = other._text[:length], other._beyond

    def commit(self, rows: Sequence[int]) -> None:
        self._text = self._text[: self.length] + [self._scratch[row] for row in rows]
        super().commit(rows)

    def _clear_scratch(self) -> None:
        super()._clear_scratch()
        self._scratch = []

    def _rows(self, tokens: Sequence[int], parents: Sequence[int]) -> Rows:
        self._scratch += [int(token) for token in tokens]
        return super()._rows(tokens, parents)

    def _goes_on(self, layer: int) -> bool:
        return False  # the rows below may stand on the other side of the edge

    def _lengths(self, mask: RowMask) -> Tensor:
        length = max(mask.span[1], self._edge) + 1 if self._beyond else self._edge
        return torch.full_like(mask.row_positions, length)

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        beyond = mask.row_positions + 1 > self._edge
        if self._whole is not None:
            beyond = torch.full_like(beyond, self._whole > self._edge)
        sides = beyond.unique().tolist()  # false before true
        results = []
        for side in sides:
            self._read_for(side, len(inputs))
            results.append(super()._forward(inputs, mask, features, last))
        return results[0] if len(results) == 1 else _merged(beyond, *results)

    def _read_for(self, beyond: bool, coming: int) -> None:
        """Compute all columns before the last ``coming`` rows anew, unless they were already computed for this side of
        the edge.

        beyond: whether the columns must be those of a text longer than the edge."""
        before = self.length + self.rows - coming
        self._cache.length = before
        if beyond == self._beyond:
            return
        self._beyond = beyond
        if before == 0:
            return
        self._cache.length = 0
        device = self.model.device
        for start in range(0, self.length, self.prefill_rows):
            part = self._text[start : self.length][: self.prefill_rows]
            count = len(part)
            rows = RowMask(start, list(range(count)), [(2 << r) - 1 for r in range(count)], device)
            super()._forward(torch.tensor(part, device=device), rows, (), 0)
        scratch = self.rows - coming
        if scratch:
            rows = RowMask(self.length, self._depths[:scratch], self._ancestors[:scratch], device)
            inputs = torch.tensor(self._scratch[:scratch], device=device)
            super()._forward(inputs, rows, (), 0)


def _merged(beyond: Tensor, short: tuple, long: tuple) -> tuple[Tensor | None, Tensor | None]:
    """The logits and features of rows whose pass was run twice, once for each side of the edge: each row's values come
    from the run for its own side.

    beyond: bool [R], whether a row's text is longer than the edge. short, long: logits and features of the two runs.
    The logits may be those of the last rows only."""
    parts = []
    for near, far in zip(short, long, strict=True):
        if near is None:
            parts.append(None)
        else:
            parts.append(torch.where(beyond[-len(near) :, None], far, near))
    return parts[0], parts[1]
