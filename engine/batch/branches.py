"""Several texts as branches of one session, so that one pass reads rows of all texts.

The texts form a tree, with one branch for each text, and the model passes over it as it passes over a draft tree: a row
sees its own text only. One product covers the columns of all texts; those of other texts are masked. So every model that
supports tree attention reads several texts in one pass, and its weights are read once per round.

Texts that begin with the same prompt store it once, and it is read once for all of them: Juravsky et al., Hydragen:
High-Throughput LLM Inference with Shared Prefixes (2024). Hydragen computes the attention to the prompt's keys in one
product and that to each text's own tokens separately, and joins both by their sums of exponentials.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from torch import Tensor

from engine.batch.separate import SeparateSessions
from engine.core.seen import Draft, Seen
from engine.core.target import of_layers
from engine.model.language_model import LanguageModel
from engine.model.rows import Rows
from engine.model.session import Session

MARGIN = 64  # columns of a session for drafts, besides the columns of its texts


def columns_of(capacity: int, places: int, prompt: int) -> int:
    """The columns of a session for ``places`` texts, the longest of which has ``capacity`` columns. prompt: the number
    of tokens with which all texts begin."""
    return prompt + places * (capacity - prompt)


class Branches(SeparateSessions):
    """Up to ``places`` texts in one session, the trunk. prompt: the number of tokens with which all texts begin; the
    first text that begins runs the model over them."""

    def __init__(
        self,
        model: LanguageModel,
        capacity: int,
        places: int,
        features: tuple[int, ...],
        prompt: int,
    ) -> None:
        """Open the trunk. capacity: columns for the longest text. features: the layers whose hidden states at least one
        of the texts requests."""
        super().__init__(model, capacity, places)
        self.prompt, self._layers = prompt, features
        self._trunk = model.session(columns_of(capacity, places, prompt) + MARGIN, features)
        self._settled = (
            0  # this many rows of the trunk, from the first on, belong to texts and stay
        )

    def open(self, place: int, features: tuple[int, ...]) -> Branch:
        if self.sessions[place] is not None:
            self._settled = 0  # the rows of the earlier text go
        self.sessions[place] = Branch(self, self._trunk, tuple(features))
        return self.sessions[place]

    def look_at(self, drafts: Mapping[int, Draft]) -> dict[int, Seen]:
        """Run one pass over the root and the draft tree of each of these texts."""
        self.forget()
        every, above, counts = [], [], []
        for place, draft in drafts.items():
            tokens, parents = draft.rows
            above += self.sessions[place].take(parents, self._trunk.rows + len(every))
            every += tokens
            counts.append(len(tokens))
        wanted = any(draft.features and self.sessions[p].features for p, draft in drafts.items())
        logits, states = self._trunk.feed(every, above, self._layers if wanted else ())
        seen, start = {}, 0
        for (place, draft), count in zip(drafts.items(), counts, strict=True):
            own, features = slice(start, start + count), None
            if draft.features and states is not None:
                features = of_layers(states[own], self._layers, self.sessions[place].features)
            seen[place] = Seen(logits[own], features)
            start += count
        return seen

    def forget(self) -> None:
        """Drop the trunk's rows that belong to no text any more."""
        first, trunk = self._settled, self._trunk
        texts = [branch for branch in self.sessions if branch is not None]
        held = sorted({row for branch in texts for row in branch.held(first)})
        if first + len(held) < trunk.rows:
            trunk.retain([*range(first), *held])
            now = {row: place for place, row in enumerate(held, first)}
            for branch in texts:
                branch.renumber(first, now)
        self._settled = min([trunk.rows, *(row for branch in texts for row in branch.waiting)])


class Branch(Session):
    """One text. The trunk is the session that all branches share. A branch stores which of the trunk's rows its text
    has committed or may still commit. It offers no passes through a part of the layers."""

    def __init__(self, branches: Branches, trunk: Session, features: tuple[int, ...]) -> None:
        self.model, self.features = trunk.model, features
        self._branches, self._trunk = branches, trunk
        self._prompt = 0  # the number of the trunk's committed tokens that begin this text
        self._kept: list[int] = []
        self._fresh: list[int] = []

    @property
    def length(self) -> int:
        return self._prompt + len(self._kept)

    @property
    def rows(self) -> int:
        return len(self._fresh)

    @property
    def waiting(self) -> list[int]:
        """The rows of the trunk that this text may still commit."""
        return self._fresh

    def held(self, first: int) -> list[int]:
        """The rows of the trunk, from ``first`` on, that belong to this text."""
        return self._kept[bisect_left(self._kept, first) :] + self._fresh

    def take(self, parents: Sequence[int], first: int) -> list[int]:
        """Take the rows that are about to be read from trunk row ``first`` on. parents: numbered as for
        ``Session.feed``. Returns the rows of the trunk that are their parents."""
        last, known = self._kept[-1] if self._kept else -1, self._fresh
        numbers = [*known, *range(first, first + len(parents))]
        self._fresh = numbers
        return [last if parent < 0 else numbers[parent] for parent in parents]

    def renumber(self, first: int, now: Mapping[int, int]) -> None:
        """Renumber this text's rows after rows of the trunk have been dropped. now: the new number of each remaining
        row from ``first`` on, by its old number."""
        still = bisect_left(self._kept, first)
        self._kept[still:] = [now[row] for row in self._kept[still:]]
        self._fresh = [now[row] for row in self._fresh]

    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        """As ``Session.prefill``, but the model is not run over tokens of the common prompt that it has read for another
        branch; these have no features."""
        common = max(0, min(len(tokens), self._branches.prompt - self._prompt))
        self._trunk.prefill(tokens[self._trunk.length - self._prompt : common], ())
        self._prompt += common
        return super().prefill(tokens[common:], layers, last)

    def take_over(self, other: Session, length: int) -> None:
        """Begin with the first ``length`` tokens of ``other``: another branch, or a session that has read the prompt
        with which all branches begin."""
        if isinstance(other, Branch):
            self._prompt = min(length, other._prompt)
            self._kept = other._kept[: length - self._prompt]
            return
        if self._trunk.length < length:
            self._trunk.take_over(other, length)
        self._prompt = length

    def commit(self, rows: Sequence[int]) -> None:
        self._kept += [self._fresh[row] for row in rows]
        self._fresh = []

    def _rows(self, tokens: Sequence[int], parents: Sequence[int]) -> Rows:
        self._branches.forget()
        return self._trunk._rows(tokens, self.take(parents, self._trunk.rows))

    def _read(
        self,
        rows: Rows,
        last: int | None = None,
        layers: tuple[int, ...] | None = None,
        vectors: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        return self._trunk._read(rows, last, self.features if layers is None else layers, vectors)
