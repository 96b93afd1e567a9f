"""Reading a prompt once, for one text or for several that begin with it, in one pass or in parts."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.core.step import Clock
from engine.core.target import Session, of_layers

PART = 512
"""The number of tokens in a part. A session processes a prompt in passes of this many tokens in any case, so reading
the prompt in parts gives the same numbers as reading it in one call."""


class PromptReading:
    """The target's pass over one prompt. The first text reads the prompt; other texts copy the keys and values.

    Each text has buffers of its own, as large as if it had read the prompt itself (2 * layers * KV heads * head
    dimension numbers per token), and no two texts write to the same memory. The features (the target's hidden states)
    are not copied, because nothing writes to them. A text drops this object once it has begun, so the last text to
    begin frees the memory. Texts take turns; this class is not thread-safe.

    A long prompt delays every other text of the target, so it may be read in parts, with steps of other texts in
    between: Agrawal et al., SARATHI: Efficient LLM Inference by Piggybacking Decodes with Chunked Prefills (2023).
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._layers: tuple[int, ...] = ()
        self._rows = 0  # number of last tokens whose features are kept
        self._source: Session | None = None
        self._features: Tensor | None = None
        self._milliseconds: float | None = None
        self._ahead: Session | None = (
            None  # the session that reads the prompt in parts; a text takes it later
        )
        self._parts: list[Tensor] = []  # features of the parts read so far

    @property
    def unread(self) -> int:
        """The number of prompt tokens that no session has read yet."""
        if self._source is not None:
            return 0
        return len(self._tokens) - (0 if self._ahead is None else self._ahead.length)

    def read_part(self, fresh: Callable[[], Session], most: int, clock: Clock) -> int:
        """Read up to ``most`` further tokens of the prompt. ``fresh`` opens the session in which they are read, and
        which a text uses later. Returns the number of tokens read; 0 if all had been read before. Every text must have
        called ``expect`` before. clock: measures the time of this part, so its last lap must have just ended."""
        if not self.unread:
            return 0
        if self._ahead is None:
            self._ahead = fresh()
        start = self._ahead.length
        part = self._tokens[
            start : start + (most if self._ahead.reads_parts else len(self._tokens))
        ]
        rows = start + len(part) - (len(self._tokens) - self._rows)
        features = self._ahead.prefill(part, self._layers, max(0, min(len(part), rows)))
        if features is not None:
            self._parts.append(features)
        if not self.unread:
            self._source = self._ahead
            self._features = torch.cat(self._parts) if self._parts else None
            self._parts = []
        self._milliseconds = (self._milliseconds or 0.0) + clock.lap()
        return len(part)

    def session(self, fresh: Callable[[], Session], layers: Sequence[int]) -> Session:
        """A session with these feature layers for a text: the session that has read the prompt in parts, or a new one
        from ``fresh``."""
        ahead = self._ahead
        if ahead is None or ahead is not self._source or ahead.features != tuple(layers):
            return fresh()
        self._ahead = None
        return ahead

    def expect(self, layers: Sequence[int], rows: int | None = None) -> None:
        """Announce that a text will need features of these layers at the last ``rows`` tokens (None: at all tokens). If
        the prompt was already read without them, it is read again."""
        union = tuple(sorted({*self._layers, *layers}))
        rows = max(self._rows, self._count(rows) if layers else 0)
        if (union, rows) != (self._layers, self._rows):
            self._layers, self._rows = union, rows
            self._source = self._ahead = self._milliseconds = None
            self._parts = []

    def _count(self, rows: int | None) -> int:
        return len(self._tokens) if rows is None else min(rows, len(self._tokens))

    def fill(self, session: Session, rows: int | None = None) -> Tensor | None:
        """Bring a fresh session of the target to the end of the prompt. Returns the session's features [T, n*H] at the
        last ``rows`` tokens (None: at all tokens), or None if the session requests no layers."""
        self.expect(session.features, rows)
        if self._source is None:
            self._features = session.prefill(self._tokens, self._layers, self._rows)
            self._source = session
        elif session is not self._source:
            session.take_over(self._source, len(self._tokens))
        features = of_layers(self._features, self._layers, session.features)
        return None if features is None else features[self._rows - self._count(rows) :]

    def charge(self, spent: float) -> float:
        """The milliseconds charged to a text for its prompt: the time that reading the prompt took, whichever text read
        it. So a text that only copied the keys and values is charged as if it ran alone, and the order in which texts
        begin does not matter. spent: the milliseconds that this text spent on ``fill``."""
        if self._milliseconds is None:
            self._milliseconds = spent
        return self._milliseconds
