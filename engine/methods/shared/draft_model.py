"""The draft model's side of a sequence: the text that it has read, and its rows for tree nodes."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import ClassVar

import torch
from torch import Tensor

from engine.core.constraint import Constraint
from engine.core.drafter import Drafter
from engine.core.finite import refuse_nan
from engine.core.options import Option
from engine.core.sampling import Sampling, display_distribution, likeliest
from engine.core.tree import ROOT, DraftTree, Kind
from engine.methods.shared.read_ahead import ReadRow, RowsAhead, read_rows
from engine.methods.shared.trimmed_head import NEVER
from engine.model.cache import CAPACITY
from engine.model.language_model import LanguageModel
from engine.model.session import Session


def stop_option(usual: float, what: str) -> Option:
    """The option that says when to draft no further. For greedy decoding only: there q tells how likely a token is
    to be the target's favourite, whereas a drawn token is often kept however small its q."""
    words = f"{what} (0: never)."
    return Option("stop_below", "float", usual, words, 0.0, 1.0, advanced=True, only="greedy")


STOP = stop_option(
    0.25, "Draft no further when the chance that everything so far is kept falls below this, by q"
)


class DraftReader:
    """Feeds the nodes of a tree to a draft model and keeps the accepted rows.

    q is over the target's vocabulary: the q of a draft model padded to another size is cut, or filled with
    probability 0. q is on the host.
    passes: how often the draft model was run.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: int,
        sampling: Sampling,
        constraint: Constraint | None = None,
        prompt_length: int = 0,
        head_tokens: Tensor | None = None,
        features: tuple[int, ...] = (),
    ) -> None:
        """features: indices into the model's hidden_states; ``states`` then holds these states at the tree nodes
        that were read last, [R, n*H]. head_tokens: [K], the token of each row of the model's head, if the head was cut
        (see ``engine.model.cut_head``); q is 0 for all other tokens."""
        self._model = model
        self._head_tokens = None if head_tokens is None else head_tokens.to(model.device)
        self._session = model.session(CAPACITY, features)
        self.states: Tensor | None = None
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._constraint = constraint
        self._prompt_length = prompt_length
        self._path_of: dict[int, tuple[int, ...]] = {}  # tokens after the committed ones
        self._row_of: dict[int, int] = {}
        plain = constraint is None and head_tokens is None and model.vocab_size == vocabulary
        self._ahead = RowsAhead(self._session, self._q) if plain and self._session.blocks else None
        self.passes = 0

    def read(self, context: Sequence[int], expected: int = 1) -> Tensor:
        """Catch up with the text; returns q [V] after its last token.

        expected: the most rows of q that the caller will ask for, where each follows the likeliest token of the row
        before. The draft model may read several of these tokens in one pass."""
        if expected == 1 or self._ahead is None:
            return self.law(self.read_logits(context))
        self._row_of = {ROOT: -1}
        q = self._ahead.begin(context[self._session.length :], expected)
        self.passes += self._ahead.read
        return q

    def read_logits(self, context: Sequence[int]) -> Tensor:
        """Like ``read``, but without constraint, temperature and truncation: logits in the draft's own vocabulary."""
        self._row_of = {ROOT: -1}
        if self._ahead is not None:
            self._ahead.forget()
        if self._constraint is not None:
            committed = self._prompt_length + self._constraint.committed
            self._path_of = {ROOT: tuple(context[committed:])}
        self.passes += 1
        return self._spread(self._extended(context[self._session.length :]))

    @property
    def session(self) -> Session:
        """The draft model's session of this text."""
        return self._session

    def read_masks(self, context: Sequence[int], mask: int, count: int) -> Tensor:
        """Catch up with the text, and read ``count`` - 1 masks behind it in the same pass: q [count, V] of the tokens that come
        next, each blind to those before it. The masks are forgotten, and no constraint is applied."""
        session = self._session
        self._row_of = {ROOT: -1}
        fresh = context[session.length :]
        begin = max(0, len(fresh) - 1 - count)  # a prompt; more tokens than a step can write
        if begin:
            session.prefill(fresh[:begin], layers=())
        rows = [*fresh[begin:], *[mask] * (count - 1)]
        logits, _ = session.feed(rows, range(-1, len(rows) - 1))
        session.commit(range(len(fresh) - begin))
        self.passes += 1
        return self._q(self._spread(logits[-count:]))

    def _extended(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit these tokens; returns the logits after the last of them."""
        return self._session.extend(tokens)

    def law(self, logits: Tensor) -> Tensor:
        """The logits from ``read_logits`` -> q [V]"""
        return self._q(logits if self._constraint is None else self._constrained(logits, ROOT))

    def expand(self, nodes: Sequence[int], tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Read tree nodes, parents before children, in one pass; in none if all were read ahead. Returns
        q [len(nodes), V]."""
        requests = list(zip(nodes, tokens, parents, strict=True))
        laws = self._read_before(requests)
        rest = [row for row in requests if row[0] not in laws]
        if rest:
            laws |= zip((node for node, _, _ in rest), self._passed(rest), strict=True)
        rows = [laws[node] for node in nodes]
        if rows[0].state is not None:
            self.states = torch.stack([row.state for row in rows])
        return torch.stack([row.q for row in rows]) if len(rows) > 1 else rows[0].q[None]

    def _read_before(self, requests: Sequence[tuple[int, int, int]]) -> dict[int, ReadRow]:
        """The nodes whose rows were read ahead. requests: node, token and parent of each."""
        laws = {}
        for node, token, parent in requests if self._ahead is not None else ():
            taken = self._ahead.take(token, self._row_of.get(parent), len(requests) == 1)
            self.passes += self._ahead.read
            if taken is not None:
                self._row_of[node], laws[node] = taken
        return laws

    def _passed(self, requests: Sequence[tuple[int, int, int]]) -> list[ReadRow]:
        """Read these nodes in one pass."""
        nodes, tokens, parents = zip(*requests, strict=True)
        parent_rows = []
        for row, (node, parent) in enumerate(zip(nodes, parents, strict=True), self._session.rows):
            parent_rows.append(self._row_of[parent])
            self._row_of[node] = row
            if self._ahead is not None:
                self._ahead.grow(row, parent_rows[-1], len(requests) == 1)
        self.passes += 1
        logits, states = self._session.feed(tokens, parent_rows)
        logits = self._spread(logits)
        if self._constraint is not None:
            for node, token, parent in requests:
                self._path_of[node] = (*self._path_of[parent], token)
            rows = zip(logits, nodes, strict=True)
            logits = torch.stack([self._constrained(row, node) for row, node in rows])
        return read_rows(tokens, self._q(logits), states)

    def _spread(self, logits: Tensor) -> Tensor:
        """logits [..., K] of a cut head -> [..., V]."""
        if self._head_tokens is None:
            return logits
        spread = logits.new_full((*logits.shape[:-1], self._vocabulary), NEVER)
        spread[..., self._head_tokens] = logits
        return spread

    def _constrained(self, logits: Tensor, node: int) -> Tensor:
        """logits [V] after a node, with the constraint applied."""
        return self._constraint.applied(logits, self._path_of[node])

    def renumber(self, place_of: Mapping[int, int]) -> None:
        """Take over the new numbers of the tree's nodes; rows of nodes without a new number are never kept."""
        rows = {place_of[node]: row for node, row in self._row_of.items() if node in place_of}
        self._row_of = {ROOT: -1} | rows

    def keep(self, path: Sequence[int]) -> None:
        """Commit the part of the accepted path that was read."""
        self._session.commit([self._row_of[node] for node in path if node in self._row_of])

    def rewind(self, length: int) -> None:
        """Forget everything read beyond the first ``length`` tokens of the text."""
        self._session.rewind(length)

    def _q(self, logits: Tensor) -> Tensor:
        """logits [..., v] of the draft model -> q [..., V]. Raises UserError for NaN if the host
        has the numbers."""
        if not self._model.asynchronous:
            refuse_nan(logits, self._model.name)
        size = logits.shape[-1]
        if size > self._vocabulary:
            logits = logits[..., : self._vocabulary]
        elif size < self._vocabulary:
            padding = (0, self._vocabulary - size)
            logits = torch.nn.functional.pad(logits, padding, value=float("-inf"))
        return display_distribution(logits, self._sampling).cpu()


class DraftModelDrafter(Drafter):
    """A drafter whose guesses come from a draft model of its own."""

    needs = {"draft": "draft"}
    draw_kinds = ("iid",)
    reader_class: ClassVar[type[DraftReader]] = DraftReader

    head_tokens: Tensor | None = None
    """The tokens of a draft model's head that was cut; see ``DraftReader``."""

    def __init__(self, settings, draft: LanguageModel, vocabulary: int) -> None:
        super().__init__(settings)
        self.draft = draft
        self.vocabulary = vocabulary
        self.max_context = draft.max_context

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("draft"), models.target.vocab_size)

    def begin(self, start):
        super().begin(start)
        self._reader = self._reading(self.draft)
        self.stop_below = self.settings.get("stop_below", 0.0) if self.sampling.greedy else 0.0

    def _reading(self, model: LanguageModel) -> DraftReader:
        """A reader that has read nothing of this text yet."""
        return self.reader_class(
            model,
            self.vocabulary,
            self.sampling,
            self.start.constraint,
            len(self.start.prompt),
            self.head_tokens,
            self.draft_features,
        )

    @property
    def reader(self) -> DraftReader:
        """The reader of the current text, for drafters that put this drafter's tree into a larger one."""
        return self._reader

    def observe(self, kept):
        self._reader.keep(kept.path)

    def passes(self):
        return {"draft": self._reader.passes}

    def _chain(
        self,
        context: Sequence[int],
        length: int,
        reads: Callable[[DraftTree], bool] = lambda tree: True,
        follows: Callable[[DraftTree, Tensor], bool] = lambda tree, q: True,
    ) -> DraftTree:
        """Draft at most ``length`` tokens, one after another. After each token but the last, ``reads`` decides whether
        the draft model reads it, and ``follows`` then decides, given q [V] behind it, whether another one follows. The
        token itself stays in any case."""
        tree, parent = DraftTree(), ROOT
        drawn = None if self.sampling.greedy else self.chance.uniforms(length)
        q = self._reader.read(context, 1 if drawn is not None else length)
        for place in range(length):
            kind, token = self._pick(q, None if drawn is None else drawn[place])
            parent = tree.draw(parent, token, kind, q, "draft model")
            if place + 1 == length or not reads(tree):
                break
            q = self._reader.expand([parent], tree.tokens[-1:], tree.parents[-1:])[0]
            if not follows(tree, q):
                break
        return tree

    def _likely(self, tree: DraftTree) -> bool:
        """Whether the next token is likely to be reached; see ``stop_option``."""
        return not self.stop_below or prod(tree.q) >= self.stop_below

    def _pick(self, q: Tensor, drawn: Tensor | None) -> tuple[Kind, int]:
        """The kind of the next draw, and its token. drawn: a uniform; None in greedy decoding."""
        if drawn is None:
            return "one_hot", likeliest(q)
        return "iid", int(self.chance.pick(q, drawn))
