"""A CUDA graph on a CPU: the operations of a function, recorded once and replayed.

A replay uses the same memory and runs none of the function's Python. So a number that Python computed
once (a length, a branch, a mask that was kept) is frozen, as it would be in a graph.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)
from torch.utils._pytree import tree_leaves


class Tape(TorchDispatchMode):
    """The operations of a function in the order in which they ran, with the tensors that they read and made."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple] = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self._calls.append((function, arguments, named or {}, made))
        return made

    def replay(self) -> None:
        for function, arguments, named, made in self._calls:
            again = function(*arguments, **named)
            for old, new in zip(_tensors(made), _tensors(again), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)

    def add(self, function: Callable, arguments: tuple, made: object) -> None:
        self._calls.append((function, arguments, {}, made))


def _tensors(made: object) -> list[torch.Tensor]:
    if is_dataclass(made):
        made = [getattr(made, field.name) for field in fields(made)]
    return [leaf for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor)]


def taped(function: Callable[[], object]) -> Callable[[], object]:
    function()
    with Tape() as tape:
        result = function()

    def replay() -> object:
        tape.replay()
        return result

    return replay


def one_operation(function: Callable) -> Callable:
    """Return the function as a single operation on any tape, for Python references of code that is one kernel on a GPU.
    The function returns tensors, or a dataclass of tensors."""

    def call(*arguments):
        tapes = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, Tape)]
        with _disable_current_modes():
            made = function(*arguments)
        for tape in tapes:
            tape.add(function, arguments, made)
        return made

    return call


def run_taped(sets, one, owner) -> object:
    """Replaces ``BufferSets.run`` and replays every pass."""
    one.recording = one.recording or taped(one.function)
    return one.recording()
