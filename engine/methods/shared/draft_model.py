"""The reader, which runs a draft model over the text and over the nodes of draft trees, and the base class of drafters
with a draft model."""

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
    """Return the option ``stop_below``: the chance of acceptance below which a draft ends. The option is for greedy
    decoding only. There the q of a token estimates the chance that the token is also the target's likeliest. In sampled
    decoding this estimate is too low, because a drawn token is often accepted even if its q is small."""
    words = f"{what} (0: never)."
    return Option("stop_below", "float", usual, words, 0.0, 1.0, advanced=True, only="greedy")


STOP = stop_option(
    0.25, "Draft no further when the chance that everything so far is kept falls below this, by q"
)


class DraftReader:
    """Runs a draft model over a text and over the nodes of draft trees, and commits the rows of accepted nodes. A row
    is the result of the draft model for one token.

    Every q is on the host and over the target's vocabulary of size V. If the draft model's vocabulary has another size,
    because it is padded, q is cut, or filled with probability 0. passes: how often the draft model was run.
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
        """head_tokens: [K], the token of each row of a trimmed head (see ``engine.model.cut_head``), for which q is 0
        at all other tokens; None for a whole head. features: the indices of n of the draft model's hidden_states. If
        any are given, ``states`` holds these hidden states, concatenated, [R, n*H], for the R tree nodes of the last
        ``expand``."""
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
        """Run the draft model over the tokens of the text that it has not processed yet; returns q [V] after the last
        token.

        expected: the most rows of q that the caller will request in this step, counting this one, if each further row
        follows the likeliest token of the row before (a greedy chain). The draft model may compute several of these
        rows in one call.
        """
        if expected == 1 or self._ahead is None:
            return self.law(self.read_logits(context))
        self._row_of = {ROOT: -1}
        q = self._ahead.begin(context[self._session.length :], expected)
        self.passes += self._ahead.read
        return q

    def read_logits(self, context: Sequence[int]) -> Tensor:
        """Like ``read``, but return the logits after the text's last token instead of q, without temperature,
        truncation and constraint. The logits of a trimmed head are spread over the whole vocabulary."""
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
        """Run the draft model over the text and, in the same pass, over ``count`` - 1 mask tokens after it; returns q
        [count, V] of the next ``count`` tokens. None of these rows depends on a token that another row predicts. The
        rows of the masks are dropped after the pass, and no constraint is applied."""
        session = self._session
        self._row_of = {ROOT: -1}
        fresh = context[session.length :]
        begin = max(
            0, len(fresh) - 1 - count
        )  # above 0 only for a prompt: a step writes fewer tokens
        if begin:
            session.prefill(fresh[:begin], layers=())
        rows = [*fresh[begin:], *[mask] * (count - 1)]
        logits, _ = session.feed(rows, range(-1, len(rows) - 1))
        session.commit(range(len(fresh) - begin))
        self.passes += 1
        return self._q(self._spread(logits[-count:]))

    def _extended(self, tokens: Sequence[int]) -> Tensor:
        """Run the draft model over these tokens and commit them; returns the logits after the last token."""
        return self._session.extend(tokens)

    def law(self, logits: Tensor) -> Tensor:
        """Turn the logits from ``read_logits`` into q [V], with constraint, temperature and truncation applied."""
        return self._q(logits if self._constraint is None else self._constrained(logits, ROOT))

    def expand(self, nodes: Sequence[int], tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Run the draft model over tree nodes, parents before children; returns q [len(nodes), V] after each node. This
        takes one pass, or no pass if all nodes were computed ahead."""
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
        """Return a dictionary, node -> row, for those of the requested nodes whose rows were computed ahead. requests:
        (node, token, parent) for each node."""
        laws = {}
        for node, token, parent in requests if self._ahead is not None else ():
            row = self._ahead.take(token, self._row_of.get(parent), len(requests) == 1)
            self.passes += self._ahead.read
            if row is not None:
                self._row_of[node], laws[node] = row
        return laws

    def _passed(self, requests: Sequence[tuple[int, int, int]]) -> list[ReadRow]:
        """Return the rows of these nodes, computed in one pass. requests: (node, token, parent) for each node."""
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
        """Spread logits [..., K] of a trimmed head over the whole vocabulary: [..., V], where tokens without a row have
        the logit ``NEVER``. The logits of a whole head are returned as they are."""
        if self._head_tokens is None:
            return logits
        spread = logits.new_full((*logits.shape[:-1], self._vocabulary), NEVER)
        spread[..., self._head_tokens] = logits
        return spread

    def _constrained(self, logits: Tensor, node: int) -> Tensor:
        """Apply the constraint to the logits [V] after a node."""
        return self._constraint.applied(logits, self._path_of[node])

    def renumber(self, place_of: Mapping[int, int]) -> None:
        """Rename nodes after the nodes of their tree were renumbered. place_of: old number -> new number; nodes without
        a new number are dropped."""
        rows = {place_of[node]: row for node, row in self._row_of.items() if node in place_of}
        self._row_of = {ROOT: -1} | rows

    def keep(self, path: Sequence[int]) -> None:
        """Commit the rows of the accepted path, as far as the draft model was run over its nodes."""
        self._session.commit([self._row_of[node] for node in path if node in self._row_of])

    def rewind(self, length: int) -> None:
        """Drop the rows of all tokens after the first ``length`` tokens of the text."""
        self._session.rewind(length)

    def _q(self, logits: Tensor) -> Tensor:
        """Turn logits [..., v] of the draft model, where v is the size of its vocabulary, into q [..., V] on the host.
        Raises UserError for NaN, unless the draft model computes asynchronously."""
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
    """Base class of drafters whose guesses come from a separate draft model."""

    needs = {"draft": "draft"}
    draw_kinds = ("iid",)
    reader_class: ClassVar[type[DraftReader]] = DraftReader

    head_tokens: Tensor | None = None
    """The tokens of the draft model's trimmed head; None for a whole head. See ``DraftReader``."""

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
        """Return a new reader for the current text; it has not processed any token yet."""
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
        """The reader of the current text. It is used by drafters that put this drafter's tree into a larger tree."""
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
        """Return a chain of at most ``length`` drafted tokens. Two functions are asked after each token but the last.
        First ``reads(tree)`` decides whether the draft model is run over this token. Then ``follows(tree, q)``, with q
        [V] after the token, decides whether another token is drafted. If either answer is no, the chain ends with this
        token."""
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
        """Return whether the product of the q of all drafted tokens is at least ``stop_below``; see ``stop_option``."""
        return not self.stop_below or prod(tree.q) >= self.stop_below

    def _pick(self, q: Tensor, drawn: Tensor | None) -> tuple[Kind, int]:
        """Return the kind of draw, and the token picked from q [V]. drawn: a uniform random number, by which the token
        is drawn; None in greedy decoding, where the likeliest token is taken."""
        if drawn is None:
            return "one_hot", likeliest(q)
        return "iid", int(self.chance.pick(q, drawn))
