"""Compiled passes through only some of a model's layers. A stretch is a run of consecutive layers that is compiled as a
graph of its own.

Drafters that run the target's own layers leave the target after some of them. Their passes go through one stretch after
another. A pass that begins or ends in the middle of a stretch, or that skips the attention or MLP of a layer, goes
through the torch module.

Letters in shapes: R rows, P rows of the pass (the spare ones come last), C columns of the buffers, W hidden size, D
head size, V vocabulary, N layers of the stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache

from engine.core.threads import ALL, torch_threads
from engine.fast.cpu.arrays import bias, padded, positions
from engine.fast.cpu.budget import Family
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.columns import FIRST, Columns
from engine.fast.cpu.fixed import Graphs, any_columns
from engine.fast.cpu.graph import PassedColumns
from engine.fast.cpu.passes import CompiledPasses, NotConvertible, close, spread
from engine.fast.cpu.row_shape import RowShape, rounded
from engine.fast.cpu.store import compiled, tried
from engine.model.cache import KVCache
from engine.model.layers import Layers, Passed, decoder_of, final_norm, passed, view_of
from engine.model.row_mask import RowMask

ROWS = 3  # rows of the example with which a graph is traced


class _StretchGraph(nn.Module):
    """Layers first to stop - 1 of a module, for tracing. windows: the layers' different sliding windows; None stands
    for full attention."""

    def __init__(self, module: nn.Module, first: int, stop: int, windows: Sequence) -> None:
        super().__init__()
        self._inner = tuple(range(first + 1, stop))
        self._view = decoder_of(view_of(module, Layers(first, stop), self._inner))
        self._first, self._windows = first, list(windows)

    def forward(
        self, rows: Tensor, places: Tensor, *masks_and_columns: Tensor
    ) -> tuple[Tensor, ...]:
        """Run R rows through the layers. rows: hidden states [R, W] that enter the first layer. places: positions [R].
        masks_and_columns: for each window the bias [R, C + R] that is added to the scores; then the keys and values of
        each layer, [1, Hkv, C, D]. Returns the hidden states [R, W] after the last layer; the rows' own keys and
        values, [2 N, Hkv, R, D]; and, if N > 1, the hidden states [N - 1, R, W] after each layer but the last."""
        masks = dict(zip(self._windows, masks_and_columns, strict=False))
        columns = masks_and_columns[len(masks) :]
        passed = [PassedColumns(pair) for pair in zip(columns[::2], columns[1::2], strict=True)]
        taps: dict[int, Tensor] = {}
        output = self._view(
            inputs_embeds=rows[None],
            injected=rows[None],
            position_ids=places[None],
            attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool),
            past_key_values=Cache(layers=[passed[0]] * self._first + passed),
            use_cache=True,
            row_mask=masks,
            **({"taps": taps} if self._inner else {}),
        )
        fresh = torch.cat([tensor for layer in passed for tensor in layer.fresh])
        inner = [torch.cat([taps[index] for index in self._inner])] if self._inner else []
        return output.last_hidden_state[0], fresh, *inner


class _EndGraph(nn.Module):
    """The part of a module after its last layer, for tracing: hidden states [R, W] -> logits [R, V]. count: the number
    of the module's layers."""

    def __init__(self, module: nn.Module, count: int) -> None:
        super().__init__()
        self._view = view_of(module, Layers(first=count))

    def forward(self, rows: Tensor) -> Tensor:
        places = torch.zeros(1, 1, dtype=torch.long)
        output = self._view(
            inputs_embeds=rows[None],
            injected=rows[None],
            position_ids=places,
            attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool),
            use_cache=False,
        )
        return output.logits[0]


@dataclass(frozen=True)
class _Stretch:
    first: int
    stop: int
    windows: Sequence[int | None]
    graphs: Graphs

    @property
    def nbytes(self) -> int:
        return self.graphs.nbytes


class CompiledStretches:
    """The compiled stretches of one module. ``prepare`` compiles as many as the budget has room for; each holds a
    second copy of weights that the graph of full passes holds too."""

    def __init__(self, module: nn.Module, passes: CompiledPasses) -> None:
        self._module, self._passes = module, passes
        self._count = passes.layers
        self._norm: nn.Module | None = None  # the first ``prepare`` sets this and ``_after``
        self._after: nn.Module | None = None
        self._parts: set[tuple[int, int]] = set()
        self._stretches: Family[_Stretch] = Family()
        self._ends: Family[Calls] = Family()

    def prepare(self, parts: Iterable[tuple[int, int]], rows: Iterable[int]) -> None:
        """Compile stretches for passes over these numbers of rows. parts: for each stretch, its first layer and the
        layer after its last. Raises UserError if the module's submodules have unknown names, and whatever the module
        raises."""
        shapes = {rounded(count, self._passes.sizes) for count in rows}
        if self._norm is None:
            self._after = _EndGraph(self._module, self._count)
            self._norm = final_norm(self._module)
        parts_before = len(self._parts)
        for part in parts:
            stretch = self._stretch(part, ahead=True)
            self._parts.add(part)
            if stretch is not None:
                for shape in shapes:
                    stretch.graphs.of(shape, ahead=True)
        self._end(ahead=True)
        if len(self._parts) > parts_before:
            self._passes.tidy()

    def way(self, layers: Layers) -> list[_Stretch] | None:
        """Return the stretches that together run exactly these layers. Return None if such stretches were not prepared,
        or if the budget has no room for one of them."""
        stop = self._count if layers.stop is None else layers.stop
        if layers.skipped or self._norm is None:
            return None
        stretches, at = [], layers.first
        while at < stop:
            ends = [end for first, end in self._parts if first == at and end <= stop]
            stretch = self._stretch((at, max(ends))) if ends else None
            if stretch is None:
                return None
            stretches.append(stretch)
            at = stretch.stop
        return stretches

    def _stretch(self, part: tuple[int, int], ahead: bool = False) -> _Stretch | None:
        def make() -> _Stretch | None:
            return tried(lambda: self._compiled(*part), "layers {} to {}".format(*part))

        return self._stretches.of(part, make, ahead)

    def _end(self, ahead: bool = False) -> Calls | None:
        """Return the graph that runs the part of the module after its last layer, or None if it cannot be compiled or
        there is no room for it."""
        return self._ends.of(self._count, lambda: tried(self._compiled_end, "the end"), ahead)

    def __call__(
        self,
        inputs: Tensor,
        mask: RowMask,
        columns: Columns,
        shapes: dict[int, RowShape],
        way: list[_Stretch],
        layers: Layers,
        taps: Sequence[int],
        head: bool,
    ) -> Passed:
        """Run rows through the stretches of ``way``; arguments and result as for ``engine.model.layers.passed``.
        shapes: the session's ``RowShape`` for each stretch, by the stretch's first layer."""
        rows = inputs.numpy() if layers.first else self._passes.vectors(inputs)
        count, states = len(rows), {}
        for stretch in way:
            shape = shapes.setdefault(stretch.first, self._passes.row_shape()).of(count)
            inner = tuple(tap for tap in taps if stretch.first < tap < stretch.stop)
            rows, tapped = self._through(stretch, rows, mask, columns, shape, inner)
            states |= zip(inner, map(torch.from_numpy, tapped), strict=True)
            if stretch.stop in taps:
                states[stretch.stop] = torch.from_numpy(rows)
        if layers.stop is not None:
            return Passed(torch.from_numpy(rows), states)
        end = self._end() if head else None
        if end is not None:
            shape = shapes.setdefault(self._count, self._passes.shared_row_shape()).of(count)
            logits = end([padded(rows, shape)], [0], lambda logits: logits[:count].copy())
            out = torch.from_numpy(logits)
        elif head:
            with torch_threads(ALL):
                out = self._after(torch.from_numpy(rows))
        if not head or self._count in states:
            normed = self._norm(torch.from_numpy(rows))
            if self._count in states:
                states[self._count] = normed
        return Passed(out if head else normed, states)

    def _through(
        self,
        stretch: _Stretch,
        rows: np.ndarray,
        mask: RowMask,
        columns: Columns,
        shape: int,
        inner: Sequence[int] = (),
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Run rows [R, W] through a stretch. Returns the hidden states [R, W] after its last layer, and for each layer
        in ``inner`` the hidden states [R, W] that enter this layer."""
        count, start = len(rows), mask.committed + mask.scratch - len(rows)
        biases = [bias(mask, window, shape, columns.capacity) for window in stretch.windows]

        def take(after: np.ndarray, fresh: np.ndarray, *tapped: np.ndarray):
            columns.write(stretch.first, start, fresh, count)
            places = [index - stretch.first - 1 for index in inner]
            return after[:count].copy(), [tapped[0][place, :count].copy() for place in places]

        arguments = [padded(rows, shape), positions(mask, shape), *biases]
        shared = columns.between(stretch.first, stretch.stop)
        graph = stretch.graphs.of(shape)
        return graph(arguments, range(3 if inner else 2), take, shared)

    @torch.no_grad()
    def _compiled(self, first: int, stop: int) -> _Stretch:
        stretch = _stretch_of(self._module, self._passes, first, stop)
        self._compare(stretch)
        return stretch

    @torch.no_grad()
    def _compiled_end(self) -> Calls:
        rows = _rows(ROWS, self._passes.width)
        expected = self._after(rows)
        end = Calls(compiled(self._after, [rows], self._passes.described("end")))
        actual = end([rows.numpy()], [0], lambda logits: torch.from_numpy(logits.copy()))
        if not close(actual, expected):
            raise NotConvertible("the compiled head gives other numbers")
        return end

    def _compare(self, stretch: _Stretch) -> None:
        rows = _rows(ROWS, self._passes.width)
        columns, cache = self._passes.columns(64), KVCache.empty(self._count, 64)
        layers = Layers(stretch.first, stretch.stop)
        inner = tuple(range(stretch.first + 1, stretch.stop))
        for mask in (
            RowMask(0, [0, 1, 2], [0b1, 0b11, 0b111], torch.device("cpu")),
            RowMask(3, [0, 1, 1], [0b1, 0b11, 0b101], torch.device("cpu")),
        ):
            columns.length = cache.length = mask.committed
            after, tapped = self._through(stretch, rows.numpy(), mask, columns, len(rows), inner)
            tokens, places = torch.zeros(len(rows), dtype=torch.long), mask.row_positions
            arguments = rows, tokens, places, mask, cache, layers, inner
            expected = passed(self._module, *arguments)
            references = [expected.rows, *(expected.taps[index] for index in inner)]
            for actual, state in zip([after, *tapped], references, strict=True):
                if not close(torch.from_numpy(actual), state):
                    raise NotConvertible("a compiled stretch of its layers gives other numbers")


def _stretch_of(module: nn.Module, passes: CompiledPasses, first: int, stop: int) -> _Stretch:
    """Compile a new stretch of the module. This is no method of ``CompiledStretches``, because the stretch must hold no
    reference to that object: the budget holds the stretch until the object is freed."""
    windows = passes.windows_of(Layers(first, stop))
    graph = _StretchGraph(module, first, stop, windows)
    described = passes.described(f"layers {first} to {stop}")

    def arguments(rows: int, capacity: int = 0) -> list[Tensor]:
        pairs, mask = spread(passes.example[2 * first : 2 * stop], rows, capacity)
        return [_rows(rows, passes.width), torch.arange(rows), *[mask] * len(windows), *pairs]

    def make(rows: int | None = None) -> Calls:
        inputs, sizes = arguments(ROWS), None
        if rows is not None:
            sizes = any_columns(lambda size: arguments(size.rows, size.columns), rows)
        with passes.tracing():
            model = compiled(graph, inputs, described, sizes, kept=False)
        if len(model.model.inputs) != len(inputs):
            raise NotConvertible("its layers do not use all that a pass gives them")
        return Calls(model)

    def example(rows: int) -> list[np.ndarray]:
        return [argument.numpy() for argument in arguments(rows, FIRST)]

    return _Stretch(first, stop, windows, Graphs(make(), make, passes.sizes, example))


def _rows(count: int, width: int) -> Tensor:
    """Random example hidden states, [count, width]."""
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0))
