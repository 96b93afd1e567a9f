"""Models with attention code of their own, which take an additive mask or no mask at all.

``MaskedModel`` gives each pass an additive mask: numbers that are added to the attention scores, 0 where a row may
attend to a column, and the dtype's lowest number elsewhere. ``ChainModel`` gives no mask: the module masks by itself,
as in plain decoding, so the rows must form a chain.
"""

from collections.abc import Sequence
from threading import local

import torch
from torch import Tensor, nn

from engine.errors import UserError
from engine.model.cache import KVCache
from engine.model.forward import forward_with_mask
from engine.model.language_model import LanguageModel
from engine.model.layers import Passed
from engine.model.row_mask import RowMask
from engine.model.session import Session


class MaskedModel(LanguageModel):
    """A language model that gives each pass one additive attention mask, which all layers use."""

    def __init__(
        self, model, tokenizer, name: str, attention: str, window: int | None = None
    ) -> None:
        """attention: the name of the module's own attention implementation. window: the sliding window of every layer,
        in tokens, or None."""
        self.attention, self.window = attention, window
        super().__init__(model, tokenizer, name)
        self.columns = local()
        hand_over_columns(model, self.columns)

    def uncompiled(self, module) -> LanguageModel:
        return self.reopened(module)

    def _again(self, module) -> LanguageModel:
        return type(self)(module, self.tokenizer, self.name, self.attention, self.window)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return MaskedSession(self, KVCache.empty(self.cache_layers, capacity), tuple(features))


class MaskedSession(Session):
    """A ``Session`` that gives each pass an additive attention mask: 0 where a row may attend to a column, and the
    dtype's lowest number elsewhere. Passes through single layers raise UserError."""

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        columns = mask.column_positions
        added = torch.zeros(
            len(inputs), len(columns), dtype=self.model.dtype, device=self.model.device
        )
        visible = mask.within(self.model.window)
        if visible is not None:
            added.masked_fill_(~visible, torch.finfo(added.dtype).min)
        self.model.columns.positions = columns
        try:
            return _read(self, inputs, mask, added[None, None], features, last)
        finally:
            self.model.columns.positions = None

    def _through(self, *_, **__) -> Passed:
        raise no_layers(self.model.name)


class ChainModel(LanguageModel):
    """A language model whose module masks by itself, and which therefore reads chains only."""

    holds_branches = False

    def __init__(self, model, tokenizer, name: str, attention: str) -> None:
        """attention: the name of the module's own attention implementation."""
        self.attention = attention
        super().__init__(model, tokenizer, name)

    def uncompiled(self, module) -> LanguageModel:
        return self.reopened(module)

    def _again(self, module) -> LanguageModel:
        return type(self)(module, self.tokenizer, self.name, self.attention)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return ChainSession(self, KVCache.empty(self.cache_layers, capacity), tuple(features))


class ChainSession(Session):
    """A ``Session`` that reads chains only. Rows that form no chain, and passes through single layers, raise
    UserError."""

    def _grow_scratch(self, parents: Sequence[int]) -> None:
        first = self.rows - 1
        if list(parents) != list(range(first, first + len(parents))):
            raise UserError(
                f"{self.model.name} reads chains only, for rows of a tree would get other logits than its "
                "module gives their paths; choose a drafter that proposes a chain, such as prompt_lookup."
            )
        super()._grow_scratch(parents)

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        return _read(self, inputs, mask, None, features, last)

    def _through(self, *_, **__) -> Passed:
        raise no_layers(self.model.name)


def _read(
    session: Session,
    inputs: Tensor,
    mask: RowMask,
    added: Tensor | None,
    features: tuple[int, ...],
    last: int | None,
) -> tuple[Tensor, Tensor | None]:
    logits, states = forward_with_mask(
        session.model.model,
        inputs[None],
        mask.row_positions[None],
        added,
        session._cache,
        features,
        last,
    )
    return logits[0], None if states is None else states[0]


def no_layers(name: str) -> UserError:
    """The error with which a model refuses drafters that run the target's own layers. name: the model's name."""
    return UserError(
        f"Drafting with the target's own layers does not know the attention of {name}."
    )


def hand_over_columns(module: nn.Module, columns: local) -> None:
    """Make modules of the BLOOM and MPT kinds take the positions of their columns from ``columns.positions`` [T]. While
    these positions are None, the modules count the columns themselves."""
    for part in list(module.modules()):
        if hasattr(part, "build_alibi_tensor"):
            part.build_alibi_tensor = _Bloom(part.build_alibi_tensor, columns)
        elif hasattr(part, "build_mpt_alibi_tensor"):
            part.build_mpt_alibi_tensor = _Mpt(part.build_mpt_alibi_tensor, columns)


class _Bloom:
    """Builds the ALiBi bias of BLOOM, [B * H, 1, T]: a head's slope times the position of the column."""

    def __init__(self, build, columns: local) -> None:
        self._build, self._columns = build, columns

    def __call__(self, attention_mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
        places = getattr(self._columns, "positions", None)
        if places is None:
            return self._build(attention_mask, num_heads, dtype)
        text = torch.ones(1, int(places.max()) + 1, dtype=torch.long, device=places.device)
        return self._build(text, num_heads, dtype).index_select(-1, places)


class _Mpt:
    """Builds the ALiBi bias of MPT, [H, 1, T]: a head's slope times the distance to the end of the longest possible
    text."""

    def __init__(self, build, columns: local) -> None:
        self._build, self._columns = build, columns

    def __call__(self, num_heads: int, sequence_length: int, *others, **named) -> Tensor:
        alibi = self._build(num_heads, sequence_length, *others, **named)
        places = getattr(self._columns, "positions", None)
        return alibi if places is None else alibi.index_select(-1, places)
