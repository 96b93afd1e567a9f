"""Reading a prompt: once, for one text or for several that begin with it; whole, or a part at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.core.step import Clock
from engine.core.target import Session, of_layers

PART = 512
"""Tokens of a part. A session reads as many in a pass, so a prompt gives the same numbers whole and in parts."""


class PromptReading:
    """The target's pass over one prompt. The first text reads the prompt; the others copy the result.

    Each text has buffers of its own, with as many bytes as if it had read the prompt itself (2 layers
    Hkv D numbers per token), and no two texts write to the same memory. The features are not copied,
    because nothing writes to them. A text drops this object once it has begun, so the last one to
    begin frees the memory. Texts take turns; this class is not thread-safe.

    A long prompt holds up everybody who waits for the target, so it may be read a part at a time, with steps of other texts in
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
            None  # reads the prompt a part at a time, and becomes a text's
        )
        self._parts: list[Tensor] = []  # features of the parts that were read

    @property
    def unread(self) -> int:
        """Tokens that no session has read yet."""
        if self._source is not None:
            return 0
        return len(self._tokens) - (0 if self._ahead is None else self._ahead.length)

    def read_part(self, fresh: Callable[[], Session], most: int, clock: Clock) -> int:
        """Read the next ``most`` tokens, in a session that ``fresh`` opens and that a text takes afterwards. clock: measures it, its
        last lap has just ended. Returns how many were read, 0 once all are. All ``expect`` come before."""
        if not self.unread:
            return 0
        if self._ahead is None:
            self._ahead = fresh()
        start = self._ahead.length
        part = self._tokens[
            start : start + (most if self._ahead.reads_parts else len(self._tokens))
        ]
        wanted = start + len(part) - (len(self._tokens) - self._rows)
        found = self._ahead.prefill(part, self._layers, max(0, min(len(part), wanted)))
        if found is not None:
            self._parts.append(found)
        if not self.unread:
            self._source = self._ahead
            self._features = torch.cat(self._parts) if self._parts else None
            self._parts = []
        self._milliseconds = (self._milliseconds or 0.0) + clock.lap()
        return len(part)

    def session(self, fresh: Callable[[], Session], layers: Sequence[int]) -> Session:
        """A session with these feature layers for a text: the one that has read the prompt in parts, else what ``fresh`` opens."""
        ahead = self._ahead
        if ahead is None or ahead is not self._source or ahead.features != tuple(layers):
            return fresh()
        self._ahead = None
        return ahead

    def expect(self, layers: Sequence[int], rows: int | None = None) -> None:
        """Announce that some text will want features of these layers at the last ``rows`` tokens (None: all).
        If the prompt was already read without them, it is read again."""
        union = tuple(sorted({*self._layers, *layers}))
        rows = max(self._rows, self._count(rows) if layers else 0)
        if (union, rows) != (self._layers, self._rows):
            self._layers, self._rows = union, rows
            self._source = self._ahead = self._milliseconds = None
            self._parts = []

    def _count(self, rows: int | None) -> int:
        return len(self._tokens) if rows is None else min(rows, len(self._tokens))

    def fill(self, session: Session, rows: int | None = None) -> Tensor | None:
        """Bring a fresh session of the target to the end of the prompt. Returns its features [T, n*H] at the
        last ``rows`` tokens (None: all)."""
        self.expect(session.features, rows)
        if self._source is None:
            self._features = session.prefill(self._tokens, self._layers, self._rows)
            self._source = session
        elif session is not self._source:
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
