"""Llama-class models on a CPU: sessions that read through the lean forward."""

from collections.abc import Sequence

from torch import Tensor

from engine.cpu.lean import LeanLlama
from engine.target.language_model import LanguageModel
from engine.target.layers import Layers
from engine.target.row_mask import RowMask
from engine.target.session import Session


class LeanLanguageModel(LanguageModel):
    """A language model whose passes are those of ``LeanLlama``: the same weights, the same logits."""

    def __init__(self, model, tokenizer, name: str) -> None:
        super().__init__(model, tokenizer, name)
        self.lean = LeanLlama(model)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return LeanSession(self, self.lean.cache(capacity), tuple(features))

    def head(self, hidden: Tensor) -> Tensor:
        return self.lean.head(hidden)

    def norm(self, hidden: Tensor) -> Tensor:
        return self.lean.norm(hidden)


class LeanSession(Session):
    """See ``Session``."""

    def _forward(
        self, given: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        return self.model.lean.forward(given, mask, self._cache, features, last)

    def _through(self, given: Tensor, tokens: Tensor, mask: RowMask, layers: Layers) -> Tensor:
        return self.model.lean.states(given, mask, self._cache, layers)
