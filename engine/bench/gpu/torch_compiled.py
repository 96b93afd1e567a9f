"""Passes on static buffers that torch compiles and captures, in place of our graphs and kernels."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from engine.fast.gpu.buffer_sets import BufferSet, BufferSets, Pass
from engine.fast.gpu.inputs import StepInputs
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import StaticMask
from engine.model.forward import forward

RECOMPILATIONS = 64  # of one function: the passes of several sizes, of target and draft


class CompiledSets(BufferSets):
    """Buffer sets whose passes torch compiles, and captures in its own way."""

    def run(self, one: Pass, owner: BufferSet) -> object:
        for buffer in (*owner.cache._buffers(), one.inputs.buffer):
            torch._dynamo.mark_static_address(buffer, guard=False)
        torch.compiler.cudagraph_mark_step_begin()
        return _compiled_step()(*one.function.args)


@cache
def _compiled_step() -> Callable:
    torch._dynamo.config.recompile_limit = RECOMPILATIONS
    return torch.compile(_step, mode="reduce-overhead", dynamic=False)


def _step(module, inputs: StepInputs, cache: StaticCache, features: tuple[int, ...]):
    """As ``engine.fast.gpu.static_step.step``, for layers without a window, and without the properties that are computed once, which
    hold a lock in Python 3.11 and would cut the compiled graph in two."""
    mask = StaticMask(inputs, cache.capacity)
    seen = _Seen(mask._visible(None))
    with cache.written_at(StaticMask.columns.func(mask)):
        positions = StaticMask.row_positions.func(mask)
        return forward(module, inputs.tokens, positions, seen, cache, features)


class _Seen:
    """A mask for layers without a window."""

    def __init__(self, seen: Tensor) -> None:
        self._seen = seen

    def within(self, window: int | None) -> Tensor:
        return self._seen
