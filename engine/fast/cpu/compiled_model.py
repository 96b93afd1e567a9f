"""Language models on a CPU whose full passes are compiled by OpenVINO."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from engine.core.load import UNKNOWN, Expected
from engine.core.seen import Begun, Draft, ReadChain, Seen
from engine.core.threads import ALL, torch_threads
from engine.errors import UserError
from engine.fast.cpu.ahead import ModelAhead
from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import Columns
from engine.fast.cpu.convertible import NotConvertible
from engine.fast.cpu.passes import CompiledPasses, FeatureGraphs
from engine.fast.cpu.row_shape import RowShape
from engine.fast.cpu.store import compiled, in_one_line, tried
from engine.fast.cpu.stretches import CompiledStretches
from engine.model.language_model import LanguageModel
from engine.model.layers import Layers, Passed
from engine.model.row_mask import RowMask
from engine.model.rows import Rows
from engine.model.session import UNREAD, Session

log = logging.getLogger(__name__)

PARTS = 3
"""This many passes over a frequent number of rows, which has a graph of its own, take less time than one pass over
another number of rows."""


class CompiledModel(LanguageModel):
    """A language model whose full passes are those of ``CompiledPasses``: the same weights, and the same logits up to
    rounding. Passes through only some layers of a small model use ``CompiledStretches`` if these were compiled in
    advance. All other passes go through the torch module, on the same KV columns."""

    torch_threads = 1
    """torch does only small operations; while waiting for more, its threads would spin beside OpenVINO's."""

    def __init__(self, model, tokenizer, name: str) -> None:
        super().__init__(model, tokenizer, name)
        self.passes = CompiledPasses(model)
        self.reads_stored = self.passes.general.stored
        self.stretches = CompiledStretches(model, self.passes)
        self.ahead = ModelAhead(model, self.passes)
        self._heads: Family[Calls] = Family()

    def expect(self, features: Sequence[int], nodes: int, coming: Expected = UNKNOWN) -> None:
        with suppress(Exception):  # the error is logged when a session is made
            self.passes.prepare(tuple(features), 1 + nodes)

    def expect_chains(self, features: Sequence[int] = (), coming: Expected = UNKNOWN) -> None:
        self.ahead.prepare(tuple(features), coming)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        features = tuple(features)
        try:
            graphs = self.passes.graphs_with(features)
        except Exception as error:  # noqa: BLE001 - as when the model was opened
            log.warning(
                "Features of %s come from its own module: %s", self.name, in_one_line(error)
            )
            return super().session(capacity, features)
        return CompiledSession(self, self.passes.columns(capacity), graphs, features)

    def view_columns(self, capacity: int) -> Columns:
        return self.passes.columns(capacity)

    def read_view(self, tokens: Sequence[int], mask: RowMask, columns: Columns) -> Tensor:
        """Read R tokens through a cache view (``engine.model.cache_view``), with the compiled graph; returns their
        logits [R, V]. columns: the view's KV columns, to which the tokens' keys and values are added."""
        graphs = self.passes.graphs_with(())
        inputs = torch.tensor(self.readable(tokens))
        return self.passes(inputs, mask, columns, graphs, (), None)[0]

    def prepare_stretches(self, cuts: Iterable[int], nodes: int) -> None:
        self._prepare(pairwise(sorted({0, *cuts, self.layers})), (1, 1 + nodes))

    def prepare_exits(self, exits: Iterable[int]) -> None:
        self._prepare(pairwise(sorted({0, *exits})), (1,))

    def _prepare(self, parts: Iterable[tuple[int, int]], rows: Sequence[int]) -> None:
        """Compile a small model's stretches of layers for passes over these numbers of rows. parts: for each stretch,
        its first layer and the layer after its last.

        A large model gets no stretches. They would hold the weights of its layers once more, and would save only 6 to
        10 % of the time of a step (measured with the drafter ``del`` and 135 M parameters).
        """
        if self.passes.large:
            return
        try:
            self.stretches.prepare(parts, rows)
        except Exception as error:  # noqa: BLE001 - as when the model was opened
            log.warning("%s drafts through its own module: %s", self.name, in_one_line(error))

    def head(self, hidden: Tensor) -> Tensor:
        graph = None
        if not self.passes.large:
            graph = self._heads.of("head", lambda: tried(self._compiled_head, "the head"))
        if graph is None:
            with torch_threads(ALL):
                return super().head(hidden)
        return graph([hidden.numpy()], [0], lambda logits: torch.from_numpy(logits.copy()))

    def _compiled_head(self) -> Calls:
        head = nn.Sequential(self.model.get_output_embeddings())
        return Calls(compiled(head, [torch.zeros(2, self.hidden_size)], "head"))


class CompiledSession(Session):
    """A ``Session`` whose passes run through compiled graphs where there are any."""

    def __init__(
        self,
        model: CompiledModel,
        cache: Columns,
        graphs: FeatureGraphs,
        features: tuple[int, ...],
    ) -> None:
        super().__init__(model, cache, features)
        self._graphs = {features: graphs}
        self._shapes: dict[int, RowShape] = {}  # for passes through stretches, by first layer
        self._prompt: list[int] = []  # postponed: the first pass over a draft reads these as well

    def _tokens(self, rows: Rows) -> Tensor:
        return torch.from_numpy(np.array(rows.tokens, np.int64))

    def rows_at_once(self, remaining: int) -> int:
        usual = () if self.model.passes.large else self.model.passes.sizes
        if self.length and usual and remaining <= PARTS * usual[-1]:
            return usual[-1]
        return super().rows_at_once(remaining)

    def prefill(
        self,
        tokens: Sequence[int],
        layers: tuple[int, ...] | None = None,
        last: int | None = None,
        later: bool = False,
    ) -> Tensor | None:
        if not later:
            return super().prefill(tokens, layers, last)
        self._prompt = list(tokens)
        return None

    @property
    def postponed(self) -> int:
        return len(self._prompt)

    def look(self, draft: Draft) -> Seen:
        prompt, self._prompt = self._prompt, []
        if prompt and self._reads_at_once(prompt, draft):
            return self._look_from_the_start(prompt, draft)
        if prompt:
            self.prefill(prompt, layers=())
        return super().look(draft)

    def _reads_at_once(self, prompt: list[int], draft: Draft) -> bool:
        plain = draft.begun is None and draft.probes is None and not self.features
        return plain and len(prompt) + 1 + len(draft.tree) <= self.prefill_rows

    @torch.no_grad()
    def _look_from_the_start(self, prompt: list[int], draft: Draft) -> Seen:
        """Read the prompt, the root and the tree in one pass, and commit the prompt."""
        tokens, parents = draft.rows
        start = len(prompt)
        above = [*range(-1, start - 1), *(parent + start for parent in parents)]
        logits, _ = self._read(self._rows([*prompt, *tokens], above), last=len(tokens), layers=())
        self.length = start
        self._clear_scratch()
        self._grow_scratch(parents)
        return Seen(logits, None)

    @property
    def blocks(self) -> Sequence[int]:
        return self.model.ahead.blocks

    def read_ahead(self, tokens: Sequence[int], count: int, text: bool = True) -> ReadChain:
        chain = self._ahead(tokens, count) if len(tokens) <= UNREAD else None
        if chain is None:
            return super().read_ahead(tokens, count, text)
        if text:
            self.length += len(tokens)
            self._grow_scratch(range(-1, count - 2))
        else:
            self._grow_scratch(range(self.rows - 1, self.rows - 1 + count))
        return chain

    def _ahead(self, tokens: Sequence[int], count: int) -> ReadChain | None:
        """Read the tokens after all columns (committed or scratch), and then ``count`` - 1 more tokens that the graph
        chooses itself. Return None if there is no graph for this."""
        start = self.length + self.rows
        self._cache.reserve(start + len(tokens) + count - 1)
        graph = self.model.ahead.graph(count, self._cache.capacity, self.features)
        if graph is None:
            return None
        read = np.array(self.model.readable(tokens), np.int64)
        return graph(self._cache, [read], start)

    def _forward(
        self, given: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        passes = self.model.passes
        if features not in self._graphs:
            self._graphs[features] = passes.graphs_with(features)
        return passes(given, mask, self._cache, self._graphs[features], features, last)

    def _keeps(self, begun: Begun) -> bool:
        """Whether the target's pass goes on from the hidden states at which the drafter stopped. It does not if the
        remaining layers have no compiled stretches, because a full compiled pass over the same rows then takes less
        time."""
        way = self.model.stretches.way(Layers(first=begun.layer))
        return way is not None and super()._keeps(begun)

    def _through(
        self,
        given: Tensor,
        tokens: Tensor,
        mask: RowMask,
        layers: Layers,
        taps: tuple[int, ...],
        head: bool,
    ) -> Passed:
        stretches = self.model.stretches
        way = stretches.way(layers)
        if way is None:
            with torch_threads(ALL):
                return super()._through(given, tokens, mask, layers, taps, head)
        cache, shapes = self._cache, self._shapes
        return stretches(given, mask, cache, shapes, way, layers, taps, head)


def compiled_model(module, tokenizer, name: str) -> CompiledModel | None:
    """Return the compiled model. If the module cannot be compiled, log the reason and return None.

    Raises UserError for an invalid setting.
    """
    try:
        return CompiledModel(module, tokenizer, name)
    except UserError:
        raise
    except ImportError:
        log.warning("OpenVINO is not installed; %s runs through its own module.", name)
    except NotConvertible as error:
        log.warning("%s runs through its own module: %s.", name, error)
    except Exception as error:  # noqa: BLE001 - of OpenVINO, of a traced module: no common kind
        log.warning("%s runs through its own module: %s", name, in_one_line(error))
    return None
