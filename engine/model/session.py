"""The session in which a language model reads one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.core.prompt import PART
from engine.core.sampling import likeliest
from engine.core.seen import Begun, Draft, Probes, ReadChain, Seen
from engine.model.cache import KVCache
from engine.model.forward import forward
from engine.model.going_on import goes_on
from engine.model.layers import Layers, Passed, passed
from engine.model.row_mask import RowMask
from engine.model.rows import Rows

if TYPE_CHECKING:
    from engine.model.language_model import LanguageModel

UNREAD = 2
"""The most tokens that a draft model has not read yet after a step: the last token that it drafted, and the final token
of the step."""
PREFILL_ROWS = PART  # rows of one prefill pass; bounds the mask and the activations


class Session:
    """One sequence as a model reads it: committed columns, and the scratch rows of the running step.

    Scratch rows are numbered from 0 since the last commit. Each has a parent row, or -1 for the last committed token,
    and sees the committed columns, its ancestors and itself.

    To read a row is to run the model over it, so that it gets a column in the cache. ``prefill`` and ``extend`` read
    text and commit it at once: ``prefill`` returns no logits, ``extend`` does. Other methods read scratch rows, which
    wait for ``commit`` or ``drop``: ``feed`` reads given rows, ``look`` a whole draft, ``read_ahead`` a chain that
    chooses its own tokens, and ``through`` runs rows through some of the layers.
    """

    prefill_rows = PREFILL_ROWS
    reads_parts = True
    """Whether a prompt may be split over several calls of ``prefill`` without a change in the result."""

    def __init__(self, model: LanguageModel, cache: KVCache, features: tuple[int, ...]) -> None:
        """cache: empty columns. features: indices into hidden_states, whose states each pass returns."""
        self.model = model
        self.features = features
        self.length = 0
        self._cache = cache
        self._clear_scratch()

    def _clear_scratch(self) -> None:
        self._depths: list[int] = []
        self._ancestors: list[int] = []  # bit s of an entry: the row sees scratch row s
        # by index into hidden_states: states of rows that were read in stretches of layers
        self._taps: dict[int, list[Tensor]] = {}

    @property
    def rows(self) -> int:
        """The number of scratch rows that were read since the last commit."""
        return len(self._depths)

    @torch.no_grad()
    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        """Read and commit T tokens without computing logits. Returns features [T, n*H]: the hidden states after n
        layers, side by side; None if no layers are wanted.

        layers: the layers whose features are returned; None means the session's own. last: how many of the last tokens
        have their features returned; None means all. later: allow the session to postpone the pass over these tokens
        and join it to the pass of the next ``look``. The caller then gets no features, and may call no other method
        before that ``look``.
        """
        layers, parts = self.features if layers is None else layers, []
        # the first token whose features are kept
        first_kept = 0 if last is None else len(tokens) - last
        start = 0
        while start < len(tokens):
            chunk = tokens[start : start + self.rows_at_once(len(tokens) - start)]
            rows = self._rows(chunk, range(-1, len(chunk) - 1))
            _, features = self._read(rows, last=0, layers=layers)
            self.commit(range(len(chunk)))
            if layers and first_kept < start + len(chunk):
                parts.append(features[max(0, first_kept - start) :])
            start += len(chunk)
        if not layers:
            return None
        if not parts:
            width = self.model.hidden_size * len(layers)
            return torch.empty(0, width, dtype=self.model.dtype, device=self.model.device)
        return torch.cat(parts)

    @property
    def postponed(self) -> int:
        """The number of prompt tokens that ``prefill`` has postponed and that are not read yet."""
        return 0

    def rows_at_once(self, remaining: int) -> int:
        """The largest number of rows for the next pass of a prefill that has ``remaining`` tokens left to read."""
        return self.prefill_rows

    @torch.no_grad()
    def take_over(self, other: Session, length: int) -> None:
        """Start this session, which has read nothing yet, with copies of the first ``length`` committed columns of
        another session of the same model."""
        self._cache.take_over(other._cache, length)
        self.length = length

    @torch.no_grad()
    def feed(
        self,
        tokens: Sequence[int],
        parents: Sequence[int],
        layers: tuple[int, ...] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Read R rows in one pass; returns logits [R, V], and features [R, n*H], n hidden states side by side, or None
        if there are none.

        parents: the number of each row's parent row, or -1; a parent comes before its child. layers: the layers whose
        features are returned; None means the session's own.
        """
        return self._read(self._rows(tokens, parents), layers=layers)

    @torch.no_grad()
    def through(
        self,
        inputs: Sequence[int] | Tensor,
        layers: Layers,
        parents: Sequence[int] | None = None,
        head: bool = False,
    ) -> Tensor:
        """Run R rows through some layers; returns the hidden states [R, H] after the last of these layers, and after
        the final norm if the pass runs to the end.

        inputs: tokens, or vectors [R, H] in place of their embeddings. parents: for new rows, as for ``feed``. None
        means that the rows are not new: the last R scratch rows go on from ``layers.first``, where ``inputs`` are their
        hidden states. head: return logits [R, V] instead of hidden states. Layers that were not run have no columns for
        these rows, so the rows must go on through those layers, or be dropped, before other rows are read.
        """
        if parents is None:
            rows = self._last(len(inputs))
        else:
            rows = self._rows(_tokens_of(inputs), parents)
        self._cache.reserve(self.length + self.rows)
        self._cache.length = self.length + rows.behind
        tokens = self._tokens(rows)
        vectors = inputs if isinstance(inputs, Tensor) else tokens
        taps = layers.taps(self.features, self.model.layers)
        passage = self._through(vectors, tokens, self._mask(rows), layers, taps, head)
        self._cache.length = self.length + self.rows  # skipped layers did not count these rows
        for index, states in passage.taps.items():
            self._taps.setdefault(index, []).append(states)
        return passage.rows

    def _last(self, count: int) -> Rows:
        """The last ``count`` scratch rows as ``Rows``, with 0 in place of each token."""
        return Rows([0] * count, self.length, self._depths, self._ancestors[-count:])

    def _through(
        self,
        inputs: Tensor,
        tokens: Tensor,
        mask: RowMask,
        layers: Layers,
        taps: tuple[int, ...],
        head: bool,
    ) -> Passed:
        """Run rows through some layers; arguments and result as for ``engine.model.layers.passed``."""
        positions = mask.row_positions
        module = self.model.model
        return passed(module, inputs, tokens, positions, mask, self._cache, layers, taps, head)

    @torch.no_grad()
    def look(self, draft: Draft) -> Seen:
        """Read the root and tree of a draft, and its probe rows if it has any, in one pass.

        If the drafter has already run some of these rows through the first layers, the pass goes on from their hidden
        states, provided that this gives the same logits as a whole pass.
        """
        if draft.begun is not None:
            if self._keeps(draft.begun):
                return self._go_on(draft)
            self.drop()
        if draft.probes is None:
            layers = None if draft.features else ()
            return Seen(*self._read(self._rows(*draft.rows), layers=layers))
        if all(self._goes_on(join.layer) for join in draft.probes.joins if join.layer):
            return self._with_probes(draft, draft.probes)
        return Seen(*self._read(self._rows(*draft.rows)))

    def _with_probes(self, draft: Draft, probes: Probes) -> Seen:
        """Read a draft together with its probe rows. The pass stops at each layer at which probe rows join, takes them
        in, and goes on with all rows."""
        tokens, parents = draft.rows
        self._rows(tokens, parents)
        states, size, at = self._embedded(tokens), len(tokens), 0
        waiting = probes.rows
        for join in probes.joins:
            if join.layer > at:
                states, at = self.through(states, Layers(at, join.layer)), join.layer
            self._rows([0] * join.count, waiting[: join.count])
            waiting = waiting[join.count :]
            states = torch.cat([states, join.made(states)])
        if at:
            logits = self.through(states, Layers(first=at), head=True)
            features = self._tapped(size)
        else:
            logits, features = self._read(self._last(len(states)), vectors=states)
            features = None if features is None else features[:size]
        return Seen(logits[:size], features, logits[size:])

    def _tapped(self, count: int | None = None) -> Tensor | None:
        """The features [R, n*H] of scratch rows that were run through a few layers at a time; None if the session
        returns no features. count: how many of the rows, from the first on; None means all."""
        if not self.features:
            return None
        return torch.cat([torch.cat(self._taps[index])[:count] for index in self.features], -1)

    def _goes_on(self, layer: int) -> bool:
        """Whether rows that stop at this layer and go on later get the same numbers as in a whole pass."""
        return goes_on(self.model, layer)

    def _keeps(self, begun: Begun) -> bool:
        """Whether the pass over a draft goes on from the rows that the drafter has already run through the first
        layers."""
        return self._goes_on(begun.layer)

    def _go_on(self, draft: Draft) -> Seen:
        tokens, parents = draft.rows
        begun, read = draft.begun, self.rows
        states = begun.states
        if read < len(tokens):
            rest = self.through(tokens[read:], Layers(stop=begun.layer), parents[read:])
            states = torch.cat([states, rest])
        logits = self.through(states, Layers(first=begun.layer), head=True)
        return Seen(logits, self._tapped())

    def _embedded(self, tokens: Sequence[int]) -> Tensor:
        readable = self.model.readable(tokens)
        return self.model.embed(torch.tensor(readable, device=self.model.device))

    @torch.no_grad()
    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a chain of tokens; returns the logits [V] after the last token."""
        if len(tokens) > self.prefill_rows:
            self.prefill(tokens[:-1])
            tokens = tokens[-1:]
        logits, _ = self._read(self._rows(tokens, range(-1, len(tokens) - 1)), last=1)
        self.commit(range(len(tokens)))
        return logits[-1]

    @property
    def blocks(self) -> Sequence[int]:
        """The values of ``count`` for which ``read_ahead`` takes less time than ``count`` passes."""
        return ()

    def read_ahead(self, tokens: Sequence[int], count: int, text: bool = True) -> ReadChain:
        """Read tokens, and then a chain of ``count`` - 1 rows, each the likeliest token after the row before it.
        Returns the results of the last token and of the ``count`` - 1 rows of the chain.

        text: if true, the tokens continue the text and are committed, and there must be no scratch rows. If false,
        there is one token, which becomes a scratch row below the last scratch row, and all scratch rows must form one
        chain.
        """
        if text:
            self.prefill(tokens[:-1], layers=())
        token, passes, likeliest_tokens = tokens[-1], [], []
        for place in range(count):
            passes.append(self.feed([token], [self.rows - 1]))
            if text and place == 0:
                self.commit([0])
            token = likeliest(passes[-1][0][0])
            likeliest_tokens.append(token)
        return ReadChain.of(passes, likeliest_tokens)

    def columns(self, layer: int) -> tuple[Tensor, Tensor]:
        """The keys and values of the T committed tokens in a layer, [1, Hkv, T, D] each, for Hkv key-value heads of
        size D. They are views, valid until the session reads, commits or drops rows."""
        held = self._cache.layers[layer]
        return held.keys[:, :, : self.length], held.values[:, :, : self.length]

    @torch.no_grad()
    def take_in(self, columns: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Commit R tokens whose keys and values were computed elsewhere, for instance by a ``CacheView``. columns: keys
        and values [1, Hkv, R, D], by layer. There must be no scratch rows."""
        count = columns[0][0].shape[2]
        self._cache.reserve(self.length + count)
        self._cache.length = self.length
        for held, (keys, values) in zip(self._cache.layers, columns, strict=True):
            held.update(keys, values)
        self.length += count

    def commit(self, rows: Sequence[int]) -> None:
        """Commit these scratch rows, which form a path from the last committed token, and drop all other scratch
        rows."""
        self._cache.keep(self.length, list(rows))
        self.length += len(rows)
        self._clear_scratch()

    def drop(self) -> None:
        """Drop all scratch rows."""
        self.commit(())

    def retain(self, rows: Sequence[int]) -> None:
        """Drop all scratch rows but ``rows``, and number the remaining rows anew. rows: ascending, with all ancestors
        of each row."""
        still = next((place for place, row in enumerate(rows) if place != row), len(rows))
        moved = rows[still:]
        self._cache.keep(self.length + still, [row - still for row in moved])
        now = {row: place for place, row in enumerate(moved, still)}
        sees = self._ancestors[:still]
        for row, place in now.items():
            above = (self._ancestors[row] ^ 1 << row).bit_length() - 1
            sees.append((sees[now.get(above, above)] if above >= 0 else 0) | 1 << place)
        self._depths, self._ancestors = [self._depths[row] for row in rows], sees

    def rewind(self, length: int) -> None:
        """Drop all scratch rows, and all committed tokens but the first ``length``."""
        self.length = min(self.length, length)
        self.drop()

    def _read(
        self,
        rows: Rows,
        last: int | None = None,
        layers: tuple[int, ...] | None = None,
        vectors: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Read R rows in one pass; returns logits [last, V] and features [R, n*H], either of which may be None. last:
        how many of the last rows need logits; None means all. layers: the layers whose features are returned; None
        means the session's own. vectors: [R, H], in place of the tokens' embeddings."""
        features = self.features if layers is None else layers
        self._cache.reserve(self.length + self.rows)
        inputs = self._tokens(rows) if vectors is None else vectors
        return self._forward(inputs, self._mask(rows), features, last)

    def _tokens(self, rows: Rows) -> Tensor:
        return torch.tensor(rows.tokens, device=self.model.device)

    def _mask(self, rows: Rows) -> RowMask:
        return RowMask(self.length, self._depths, rows.ancestors, self.model.device)

    def _forward(
        self, inputs: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Run the pass over R rows; returns logits and features as ``_read`` does. inputs: token ids [R], or vectors
        [R, H] in place of their embeddings."""
        positions = mask.row_positions[None]
        logits, states = forward(
            self.model.model, inputs[None], positions, mask, self._cache, features, last
        )
        return logits[0], None if states is None else states[0]

    def _rows(self, tokens: Sequence[int], parents: Sequence[int]) -> Rows:
        self._grow_scratch(parents)
        tokens = self.model.readable(tokens)
        return Rows(tokens, self.length, self._depths, self._ancestors[-len(tokens) :])

    def _grow_scratch(self, parents: Sequence[int]) -> None:
        for row, parent in enumerate(parents, start=self.rows):
            above = (-1, 0) if parent < 0 else (self._depths[parent], self._ancestors[parent])
            self._depths.append(above[0] + 1)
            self._ancestors.append(above[1] | 1 << row)


def _tokens_of(inputs: Sequence[int] | Tensor) -> Sequence[int]:
    """The tokens; if the inputs are vectors, a zero for each vector."""
    return [0] * len(inputs) if isinstance(inputs, Tensor) else inputs
