"""Reading a prompt: once, for one text or for several that begin with it."""

from collections.abc import Sequence

from torch import Tensor

from engine.core.target import Session, of_layers


class PromptReading:
    """The target's pass over one prompt. The first text reads the prompt; the others copy the result.

    Each text has buffers of its own, with as many bytes as if it had read the prompt itself (2 layers
    Hkv D numbers per token), and no two texts write to the same memory. The features are not copied,
    because nothing writes to them. A text drops this object once it has begun, so the last one to
    begin frees the memory. Texts take turns; this class is not thread-safe.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._layers: tuple[int, ...] = ()
        self._rows = 0  # number of last tokens whose features are kept
        self._source: Session | None = None
        self._features: Tensor | None = None
        self._milliseconds: float | None = None

    def expect(self, layers: Sequence[int], rows: int | None = None) -> None:
        """Announce that some text will want features of these layers at the last ``rows`` tokens (None: all).
        If the prompt was already read without them, it is read again."""
        union = tuple(sorted({*self._layers, *layers}))
        rows = max(self._rows, self._count(rows) if layers else 0)
        if (union, rows) != (self._layers, self._rows):
            self._layers, self._rows = union, rows
            self._source, self._milliseconds = None, None

    def _count(self, rows: int | None) -> int:
        return len(self._tokens) if rows is None else min(rows, len(self._tokens))

    def fill(self, session: Session, rows: int | None = None) -> Tensor | None:
        """Bring a fresh session of the target to the end of the prompt. Returns its features [T, n*H] at the
        last ``rows`` tokens (None: all)."""
        self.expect(session.features, rows)
        if self._source is None:
            self._features = session.prefill(self._tokens, self._layers, self._rows)
            self._source = session
        else:
            session.take_over(self._source, len(self._tokens))
        features = of_layers(self._features, self._layers, session.features)
        return None if features is None else features[self._rows - self._count(rows) :]

    def charge(self, spent: float) -> float:
        """The time charged to a text for its prompt, given the milliseconds it spent on ``fill``: the
        milliseconds that reading the prompt took, whichever text read it. So a text that copied the
        result is charged as if it ran alone, and the order of the lanes of a race does not matter."""
        if self._milliseconds is None:
            self._milliseconds = spent
        return self._milliseconds
