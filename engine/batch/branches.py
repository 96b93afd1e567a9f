"""Texts with the same prompt, as branches of one session: the prompt is stored once and read once for all texts.

Juravsky et al., Hydragen: High-Throughput LLM Inference with Shared Prefixes (2024): one product computes the attention
of all texts' queries to the prompt's keys. Hydragen computes the attention to each text's own tokens separately, and
joins both results by their sums of exponentials. Here the texts form a tree below the prompt, with one branch for each
text, and the model passes over it as it passes over a draft tree. One product covers the prompt's columns and those of
all texts; the columns of other texts are masked. So every model that supports tree attention can share a prompt in this
way, and its weights are read once per round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from engine.batch.separate import SeparateSessions
from engine.core.seen import Draft, Seen
from engine.model.language_model import LanguageModel
from engine.model.session import Session

MARGIN = 64  # columns of a session for drafts, besides the columns of its texts


class Branches(SeparateSessions):
    """Up to ``places`` texts that begin with the same prompt. The first text that begins runs the model over the
    prompt."""

    def __init__(self, model: LanguageModel, capacity: int, places: int, prompt: int) -> None:
        """Open the shared session. capacity: columns for the longest text. prompt: the number of tokens with which all
        texts begin."""
        super().__init__(model, capacity, places)
        self._trunk = model.session(prompt + places * (capacity - prompt) + MARGIN)

    def open(self, place: int, features: tuple[int, ...]) -> Branch:
        self.sessions[place] = Branch(self, self._trunk)
        return self.sessions[place]

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Run one pass over the root and the draft tree of each of these texts."""
        rows = [(self.sessions[place], *draft.rows) for place, draft in drafts.items()]
        return {
            place: Seen(logits, None) for place, logits in zip(drafts, self.read(rows), strict=True)
        }

    def read(self, asked: Sequence[tuple[Branch, Sequence[int], Sequence[int]]]) -> list[Tensor]:
        """Make one pass over rows of several texts. asked: for each text its branch, the tokens of its rows, and the
        rows' parents, which are numbered as for ``Session.feed``. Returns the logits [R, V] of each text, where R is
        the number of the text's rows."""
        self._forget()
        every, above = [], []
        for branch, tokens, parents in asked:
            first = self._trunk.rows + len(every)
            every += tokens
            above += [branch.place_of(parent, first) for parent in parents]
            branch.take(range(first, first + len(tokens)))
        logits, _ = self._trunk.feed(every, above)
        return [*logits.split([len(tokens) for _, tokens, _ in asked])]

    def _forget(self) -> None:
        """Drop the session's rows that belong to no text any more."""
        texts = [branch for branch in self.sessions if branch is not None]
        held = sorted(row for branch in texts for row in branch.held)
        if len(held) < self._trunk.rows:
            self._trunk.retain(held)
            now = {row: place for place, row in enumerate(held)}
            for branch in texts:
                branch.renumber(now)


class Branch:
    """One text, with the interface of a session. The trunk is the session that all branches share. A branch stores
    which of the trunk's rows its text has committed or may still commit."""

    features: tuple[int, ...] = ()
    postponed = 0
    reads_parts = True

    def __init__(self, branches: Branches, trunk: Session) -> None:
        self.model = trunk.model
        self._branches, self._trunk = branches, trunk
        self._prompt = 0  # the number of tokens of the trunk's text that begin this text
        self._kept: list[int] = []
        self._fresh: list[int] = []

    @property
    def length(self) -> int:
        return self._prompt + len(self._kept)

    @property
    def rows(self) -> int:
        return len(self._fresh)

    @property
    def held(self) -> list[int]:
        """The rows of the trunk that belong to this text."""
        return self._kept + self._fresh

    def place_of(self, parent: int, first: int) -> int:
        """The trunk row of ``parent``, which is numbered as for ``Session.feed``. first: the trunk row of the first row
        about to be read."""
        if parent < 0:
            return self._kept[-1] if self._kept else -1
        return self._fresh[parent] if parent < self.rows else first + parent - self.rows

    def take(self, rows: Sequence[int]) -> None:
        self._fresh += rows

    def renumber(self, now: Mapping[int, int]) -> None:
        """Renumber this text's rows after rows of the trunk have been dropped. now: the new number of each remaining
        row of the trunk, by its old number."""
        self._kept = [now[row] for row in self._kept]
        self._fresh = [now[row] for row in self._fresh]

    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> None:
        """Run the model over those of these prompt tokens that no other branch has run it over."""
        shared = min(len(tokens), self._trunk.length - self._prompt)
        self._trunk.prefill(tokens[shared:], ())
        self._prompt += len(tokens)

    def take_over(self, other: Branch | Session, length: int) -> None:
        """Begin with the first ``length`` tokens of the prompt, which the trunk holds already or copies from
        ``other``."""
        if self._trunk.length < length:
            self._trunk.take_over(other, length)
        self._prompt = length

    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, None]:
        (logits,) = self._branches.read([(self, tokens, parents)])
        return logits, None

    def commit(self, rows: Sequence[int]) -> None:
        self._kept += [self._fresh[row] for row in rows]
        self._fresh = []

    def drop(self) -> None:
        self.commit(())
