"""Base class of decoders that let the target write several texts at once, with one pass for all texts, and choose one
text in the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix

import torch
from torch import Tensor

from engine.core.drafter import Drafter
from engine.core.exhibits import Token, Words
from engine.core.finite import refuse_nan
from engine.core.sampling import display_distribution
from engine.core.searching import Decided
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError

Path = tuple[int, ...]
"""A text, as the tuple of its tokens after the prompt."""

MOST_ROWS = 2048  # the most rows that the target reads for all texts of a run
SHOWN_NODES, SHOWN_OPEN, SHOWN_TEXTS, SHOWN_END = 32, 16, 6, 4
"""Limits of what the page shows. SHOWN_NODES: nodes of a step that decides tokens. SHOWN_OPEN: nodes of a step that
decides none. SHOWN_TEXTS: texts in the list. SHOWN_END: last tokens of each text in the list."""


@dataclass(frozen=True)
class Candidate:
    """A text that may still be chosen. score: higher is better. ended: whether the text ends with an end token."""

    path: Path
    score: float
    ended: bool = False


class SeveralTexts(Drafter):
    """A decoder for the loop ``engine.core.searching``. The tokens of its texts are rows of the target's own session,
    after the prompt."""

    family = "decoder"
    loop = "searching"
    draw_kinds = ("unseen",)
    uses_target = True
    rows_kept = MOST_ROWS

    score_name = "log p"

    def __init__(self, settings, target) -> None:
        super().__init__(settings)
        self.target, self.ends = target, target.end_tokens

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target)

    @property
    @abstractmethod
    def texts(self) -> int:
        """The largest number of rows in a pass."""

    @abstractmethod
    def advance(self) -> None:
        """Make one pass of the target, and set ``candidates`` to all texts that may still be chosen, the best first.
        When the search is over, also set ``winner`` to the chosen text."""

    def begin(self, start):
        super().begin(start)
        self.candidates = [Candidate((), 0.0)]
        self.winner: Path | None = None
        self.room = 0  # the most tokens of a text
        self.chances: dict[
            Path, float
        ] = {}  # text -> p of its last token, for texts where it is shown
        self._row: dict[Path, int] = {}
        self._passes = 0

    def propose(self, context, max_depth):
        if not self._row:
            self.room = max_depth
            if self.texts * max_depth > MOST_ROWS:
                raise UserError(
                    f"{self.title} would read up to {self.texts * max_depth:,} rows for its texts; at most {MOST_ROWS:,} are "
                    "possible. Ask for fewer texts or fewer tokens."
                )
        written = tuple(context[len(self.start.prompt) :])
        before = self.candidates
        if self.winner is None:
            self.advance()
        chosen = self.winner
        if chosen is None:
            chosen = commonprefix([candidate.path for candidate in self.candidates])
        return self._shown(len(written), chosen, before)

    def free(self, paths: Sequence[Path]) -> Tensor:
        """Run the target over the last tokens of P texts in one pass; returns the logits [P, V] after them, without the
        constraint. The target must not have been run over a text before. But it must have been run over the text
        without its last token, or this shorter text must come earlier in ``paths``. Raises UserError for more than
        ``MOST_ROWS`` rows, and for NaN."""
        first, prompt = self.start.target.rows, self.start.prompt
        if first + len(paths) > MOST_ROWS:
            raise UserError(
                f"{self.title} has read {first:,} rows for its texts and not come to an end; at most {MOST_ROWS:,} are possible. "
                "Ask for fewer texts or fewer tokens."
            )
        self._row |= {path: row for row, path in enumerate(paths, start=first)}
        tokens = [path[-1] if path else prompt[-1] for path in paths]
        parents = [self._row[path[:-1]] if path else -1 for path in paths]
        self._passes += 1
        logits, _ = self.start.target.feed(tokens, parents)
        refuse_nan(logits, self.target.name)
        return logits.float().cpu()

    def read(self, paths: Sequence[Path]) -> Tensor:
        """Run the target over P texts like ``free``; returns the logits [P, V] after them, with the constraint
        applied."""
        logits, constraint = self.free(paths), self.start.constraint
        if constraint is None:
            return logits
        rows = [
            constraint.applied(row, path[constraint.committed :])
            for row, path in zip(logits, paths, strict=True)
        ]
        return torch.stack(rows)

    def laws(self, paths: Sequence[Path]) -> dict[Path, Tensor]:
        """Run the target over these texts; returns text -> p [V] after this text, with temperature and truncation
        applied. At temperature 0, p is the plain softmax."""
        rows = display_distribution(self.read(paths), self.sampling)
        return dict(zip(paths, rows, strict=True))

    def was_read(self, path: Path) -> bool:
        return path in self._row

    def over(self, path: Path) -> bool:
        """Whether the text ends with an end token, or has the most tokens allowed."""
        return path[-1:] != () and (path[-1] in self.ends or len(path) >= self.room)

    def passes(self):
        return {"target": self._passes}

    def _shown(self, written: int, chosen: Path, before: Sequence[Candidate]) -> DraftTree:
        """Return the tree of this step for the page: all texts, without their first ``written`` tokens, which were
        final before. chosen: all tokens that are final after this step. before: the candidates before this step."""
        tree, place_of = DraftTree(), {chosen[:written]: ROOT}
        decided = self._add(tree, place_of, chosen, written, len(chosen))
        open_now = [text.path for text in self.candidates if self.winner is None]
        most = SHOWN_NODES if decided else SHOWN_OPEN
        every = [
            *open_now,
            *(text.path for text in before),
            *(text.path for text in self.candidates),
        ]
        for path in every:
            self._add(tree, place_of, path, written, most)
        if not decided and len(place_of) > SHOWN_OPEN:
            tree, place_of = DraftTree(), {}
        alive = {
            path[:end] for path in [chosen, *open_now] for end in range(written, len(path) + 1)
        }
        given_up = {node for path, node in place_of.items() if path not in alive}
        tree.aside = Decided(decided if len(tree) else [], frozenset(given_up))
        tree.exhibits.append(self._words())
        return tree

    def _add(
        self, tree: DraftTree, place_of: dict[Path, int], path: Path, written: int, most: int
    ) -> list[int]:
        """Add the tokens of the text ``path`` to a tree of at most ``most`` nodes, as far as there is room. Returns the
        nodes of this text."""
        nodes = []
        for end in range(written + 1, len(path) + 1):
            above, here = path[: end - 1], path[:end]
            if above not in place_of or (here not in place_of and len(tree) >= most):
                break
            if here not in place_of:
                place_of[here] = tree.draw(
                    place_of[above], here[-1], source="target", q=self.chances.get(here)
                )
            nodes.append(place_of[here])
        return nodes

    def _words(self) -> Words:
        """Return the list of texts for the page: the last tokens of each text, its score, and whether it is open, ended
        or chosen."""
        lines, texts = [], dict.fromkeys(self.candidates)
        for text in list(texts)[:SHOWN_TEXTS]:
            state = "chosen" if text.path == self.winner else "ended" if text.ended else "open"
            heading = f"{text.score:.2f}, {len(text.path)} tokens, {state}: "
            lines.append([heading, *map(Token, text.path[-SHOWN_END:])])
        return Words(f"Texts under way, with their {self.score_name}", lines)
