"""A language model that computes each text only once.

It gives the same answers as the model (whose tree attention has tests of its own), so many runs of the decode loop, the
drafters and the verifiers cost little.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.seen import Draft, Seen
from engine.model.language_model import LanguageModel
from engine.model.layers import Layers
from engine.model.session import Session
from engine.parts.loading import Models


def remembering(models: Models) -> Models:
    parts = {
        role: MemoModel(part) if isinstance(part, LanguageModel) else part
        for role, part in models.parts.items()
    }
    return Models(MemoModel(models.target), parts)


class MemoModel:
    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._rows: dict[tuple, tuple[Tensor, Tensor | None]] = {}

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def session(self, capacity: int, features: Sequence[int] = ()) -> "MemoSession":
        return MemoSession(self, tuple(features))

    def reopened(self, module) -> "MemoModel":
        return MemoModel(self._model.reopened(module))

    def row(self, text: tuple[int, ...], features: tuple[int, ...]) -> tuple:
        """Logits [V] and features [1, n*H] of the last token of a text."""
        key = (text, features)
        if key not in self._rows:
            session = self._model.session(len(text), features)
            session.prefill(text[:-1])
            logits, states = session.feed(text[-1:], [-1])
            self._rows[key] = (logits[0], states)
        return self._rows[key]


class MemoSession:
    """A session with the interface of ``engine.model.session.Session``, whose results come from a ``MemoModel``."""

    blocks = ()
    postponed = 0

    def __init__(self, model: MemoModel, features: tuple[int, ...]) -> None:
        self.model, self.features = model, features
        self._text: tuple[int, ...] = ()
        self._scratch: list[tuple[int, ...]] = []
        self._real: Session | None = None  # reads vectors, whose results are not remembered

    @property
    def length(self) -> int:
        return len(self._text)

    @property
    def rows(self) -> int:
        return len(self._scratch) if self._real is None else self._real.rows

    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        layers, parts = self.features if layers is None else layers, []
        for token in tokens:
            self._text += (int(token),)
            parts.append(self.model.row(self._text, layers)[1])
        return torch.cat(parts)[-(last or len(parts)) :] if layers else None

    def look(self, draft: Draft) -> Seen:
        return Seen(*self.feed(*draft.rows))

    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        rows = []
        for token, parent in zip(tokens, parents, strict=True):
            before = self._text if parent < 0 else self._scratch[parent]
            self._scratch.append((*before, int(token)))
            rows.append(self.model.row(self._scratch[-1], self.features))
        features = torch.cat([row[1] for row in rows]) if self.features else None
        return torch.stack([row[0] for row in rows]), features

    def through(self, inputs: Tensor, layers: Layers, parents: Sequence[int], head: bool) -> Tensor:
        """Run vectors, in place of token embeddings, through layers of the real model, directly after the text."""
        if self._real is None:
            self._real = self.model._model.session(len(self._text))
            self._real.prefill(self._text)
        return self._real.through(inputs, layers, parents, head)

    def extend(self, tokens: Sequence[int]) -> Tensor:
        logits, _ = self.feed(tokens, range(-1, len(tokens) - 1))
        self.commit(range(len(tokens)))
        return logits[-1]

    def commit(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._text += self._scratch[row][-1:]
        self._scratch, self._real = [], None

    def drop(self) -> None:
        self.commit(())

    def rewind(self, length: int) -> None:
        self._text = self._text[:length]
        self.drop()
