"""Hands positions to modules that would otherwise count the positions of rows themselves.

Decoders of the BART kind take no ``position_ids``: they number the rows of a pass from the length of the cache on,
which is wrong for a tree. But their position embeddings take positions, so hooks pass the positions on to these
embeddings.
"""

import inspect
from threading import local
from weakref import WeakSet

from torch import nn

_DONE: WeakSet[nn.Module] = WeakSet()
_WANTED = {"past_key_values_length", "position_ids"}


def counts_positions(module: nn.Module) -> bool:
    """Whether the module's forward takes no ``position_ids``, so that the module counts the positions itself."""
    return "position_ids" not in inspect.signature(module.forward).parameters


def hand_over(module: nn.Module) -> None:
    """Let a module that counts positions accept ``position_ids`` [B, R], and pass them to its position embeddings.

    In a call without ``position_ids``, the module counts by itself. A module that takes positions is left as it is.
    """
    if module in _DONE or not counts_positions(module):
        return
    _DONE.add(module)
    embeddings = [part for part in module.modules() if _is_position_embedding(part)]
    if embeddings:
        positions = local()
        module.register_forward_pre_hook(_Outer(positions).begin, with_kwargs=True)
        module.register_forward_hook(_Outer(positions).end, always_call=True)
        for embedding in embeddings:
            embedding.register_forward_pre_hook(_Inner(positions).replace, with_kwargs=True)
            embedding.register_forward_hook(_Inner(positions).shape)


def _is_position_embedding(part: nn.Module) -> bool:
    return _WANTED <= set(inspect.signature(part.forward).parameters)


class _Outer:
    """The hooks of the whole module: they store the positions before a call, and remove them after it."""

    def __init__(self, given: local) -> None:
        self._given = given

    def begin(self, module, arguments, named):
        self._given.positions = named.pop("position_ids", None)
        return arguments, named

    def end(self, *_) -> None:
        self._given.positions = None


class _Inner:
    """The hooks of a position embedding: they give it the stored positions, flattened, and restore the shape of its
    output."""

    def __init__(self, given: local) -> None:
        self._given = given

    def replace(self, module, arguments, named):
        positions = getattr(self._given, "positions", None)
        if positions is None:
            return None
        # the tokens give only the shape, and the count is ignored
        return arguments[:1], {"position_ids": positions.flatten()}

    def shape(self, module, arguments, embedded):
        positions = getattr(self._given, "positions", None)
        return embedded if positions is None else embedded.reshape(*positions.shape, -1)
