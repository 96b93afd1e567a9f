"""Reading a prompt: once, for one text or for several that begin with it."""

from collections.abc import Sequence

from torch import Tensor

from engine.target.forward import of_layers
from engine.target.session import Session


class PromptReading:
    """The target's pass over one prompt. The first text reads it, the others take it over.

    What is taken over is copied: each text has buffers of its own, as many bytes as if it had read
    the prompt itself (2 layers Hkv D numbers a token), and nothing that two of them write to. Not
    copied are the features, which nobody writes to. A text lets go of this once it has begun, so
    that the last one to begin frees it. Texts take turns; this is not for several threads at once.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._layers: tuple[int, ...] = ()
        self._rows = 0  # last tokens whose features are kept
        self._source: Session | None = None
        self._features: Tensor | None = None
        self._milliseconds: float | None = None

    def expect(self, layers: Sequence[int], rows: int | None = None) -> None:
        """Some text will want features of these layers, at so many last tokens (None: all). What is not
        known before the prompt is read makes it be read again."""
        union = tuple(sorted({*self._layers, *layers}))
        rows = max(self._rows, self._count(rows) if layers else 0)
        if (union, rows) != (self._layers, self._rows):
            self._layers, self._rows = union, rows
            self._source, self._milliseconds = None, None

    def _count(self, rows: int | None) -> int:
        return len(self._tokens) if rows is None else min(rows, len(self._tokens))

    def fill(self, session: Session, rows: int | None = None) -> Tensor | None:
        """Let a fresh session of the target stand behind the prompt. Its features [T, n*H] at so many last
        tokens (None: all)."""
        self.expect(session.features, rows)
        if self._source is None:
            self._features = session.prefill(self._tokens, self._layers, self._rows)
            self._source = session
        else:
            session.take_over(self._source, len(self._tokens))
        features = of_layers(self._features, self._layers, session.features)
        return None if features is None else features[self._rows - self._count(rows) :]

    def charge(self, spent: float) -> float:
        """What a text pays for its prompt, given the milliseconds it spent on ``fill``: what
        reading it took, whether it was this text that read it or another. So a text that took it
        over is billed as it would be alone, and the order of the lanes of a race means nothing."""
        if self._milliseconds is None:
            self._milliseconds = spent
        return self._milliseconds
