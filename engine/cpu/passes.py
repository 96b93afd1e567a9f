"""Full passes of a causal language model through its compiled graph."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from engine.cpu.calls import Calls
from engine.cpu.columns import Columns
from engine.cpu.graph import NAME, PassGraph
from engine.cpu.store import compiled
from engine.cpu.threads import threads
from engine.target.attention import NAME as PLAIN
from engine.target.cache import KVCache
from engine.target.forward import forward
from engine.target.row_mask import RowMask

_CPU = torch.device("cpu")
_BY_LENGTH = {"dynamic", "longrope"}  # rotary angles that change as the text grows
_LOGITS, _FRESH, _STATES = 0, 1, 2  # outputs of a PassGraph; the states come last


class NotConvertible(Exception):
    """Why a module keeps its own passes."""


class CompiledPasses:
    """The passes of one module, compiled, and compared with its own.

    Raises NotConvertible, and whatever OpenVINO or the module raise while they make the graph.
    """

    def __init__(self, module: nn.Module) -> None:
        _check(module)
        embed = module.get_input_embeddings()
        columns, self._windows = _seen(module)
        self._layers = len(columns) // 2
        self._heads, self._size = columns[0].shape[1], columns[0].shape[3]
        graph = PassGraph(module, self._windows)
        rows, width = 3, columns[0].shape[2]
        masks = [torch.zeros(rows, width + rows)] * len(self._windows)
        vectors = embed(torch.zeros(rows, dtype=torch.long))
        given = [vectors, torch.arange(rows), torch.arange(rows), *masks, *columns]
        module.set_attn_implementation(NAME)
        try:
            described = f"{type(module).__name__} {module.config.to_json_string()}"
            self._calls = Calls(compiled(graph, given, described, threads()))
        finally:
            module.set_attn_implementation(PLAIN)
        self._compare(module, embed)

    def columns(self, capacity: int) -> Columns:
        return Columns(self._layers, self._heads, self._size, capacity)

    def __call__(
        self,
        vectors: Tensor,
        mask: RowMask,
        columns: Columns,
        features: tuple[int, ...],
        last: int | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """vectors [R, W] -> logits [last, V], features [R, n*W]; their k and v stand in the columns.

        last: how many of the last rows get logits; None is all, 0 none.
        """
        rows = len(vectors)
        looked = torch.arange(rows - (rows if last is None else max(last, 1)), rows)
        biases = [
            bias(mask.within(window), rows, columns.length, columns.capacity)
            for window in self._windows
        ]
        wanted = [_FRESH, *(_STATES + index for index in features)]
        if last != 0:
            wanted.append(_LOGITS)
        given = [vectors.contiguous(), mask.row_positions, looked, *biases]
        fresh, *taken = self._calls(given, wanted, columns.given)
        columns.append(fresh)
        logits = taken.pop() if last != 0 else None
        return logits, torch.cat(taken, -1) if features else None

    def _compare(self, module: nn.Module, embed: nn.Module) -> None:
        """Raises NotConvertible unless a prompt and a tree give the module's own numbers."""
        generator = torch.Generator().manual_seed(0)
        columns, cache = self.columns(64), KVCache.empty(self._layers, 64)
        features = (0, self._layers)
        for prefix, mask in _trial_masks():
            count = len(mask.row_positions)
            tokens = torch.randint(embed.num_embeddings, (count,), generator=generator)
            found = self(embed(tokens), mask, columns, features, None)
            positions = mask.row_positions[None]
            expected = forward(module, tokens[None], positions, mask, cache, features)
            for one, other in zip(found, expected, strict=True):
                if not torch.allclose(one, other[0], rtol=1e-3, atol=1e-3 * float(other.std())):
                    raise NotConvertible("the compiled graph gives other numbers")
            columns.keep(prefix, [])
            columns.length = cache.length


def bias(seen: Tensor | None, rows: int, used: int, capacity: int) -> Tensor:
    """What is added to the scores of a pass, [R, C + R]: the buffer's columns, then the rows' own.

    seen: bool [R, used + R], or None where every row sees all of them.
    """
    added = torch.full((rows, capacity + rows), float("-inf"))
    parts = added[:, :used], added[:, capacity:]
    if seen is None:
        for part in parts:
            part.zero_()
    else:
        for part, visible in zip(parts, seen.split([used, rows], 1), strict=True):
            part.masked_fill_(visible, 0.0)
    return added


def _trial_masks() -> Iterable[tuple[int, RowMask]]:
    """A prompt of 24 rows, and behind it a tree."""
    yield 24, RowMask(0, list(range(24)), [(2 << row) - 1 for row in range(24)], _CPU)
    yield 24, RowMask(24, [0, 1, 1, 2], [0b1, 0b11, 0b101, 0b1011], _CPU)


def _check(module: nn.Module) -> None:
    if {parameter.dtype for parameter in module.parameters()} != {torch.float32}:
        raise NotConvertible("its weights are not fp32")
    for part in module.modules():
        kinds = getattr(part, "rope_type", None)
        kinds = kinds.values() if isinstance(kinds, dict) else [kinds]
        if _BY_LENGTH & {kind for kind in kinds if isinstance(kind, str)}:
            raise NotConvertible("its rotary angles change as the text grows")


class _Asked(RowMask):
    """A mask that writes down for which windows it was asked."""

    def __init__(self) -> None:
        super().__init__(0, [0, 1], [0b1, 0b11], _CPU)
        self.windows: dict[int | None, None] = {}

    def within(self, window: int | None) -> Tensor | None:
        self.windows[window] = None
        return super().within(window)


def _seen(module: nn.Module) -> tuple[list[Tensor], list[int | None]]:
    """A pass of two rows through the module: k and v of each layer [1, Hkv, 2, D], and the windows."""
    mask = _Asked()
    layers = module.config.get_text_config().num_hidden_layers
    cache = KVCache.empty(layers, 2)
    forward(module, torch.zeros(1, 2, dtype=torch.long), mask.row_positions[None], mask, cache, ())
    columns = [each for layer in cache.layers for each in (layer.keys, layer.values)]
    return columns, list(mask.windows)
