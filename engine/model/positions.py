"""Positions for modules that count them.

Decoders of the BART kind take no ``position_ids``: they number the rows of a pass from the length of the
cache on, which is wrong for a tree. Their position embeddings do take positions, so the positions that
the caller gives the whole module are passed to these embeddings.
"""

import inspect
from threading import local
from weakref import WeakSet

from torch import nn

_DONE: WeakSet[nn.Module] = WeakSet()
_WANTED = {"past_key_values_length", "position_ids"}


def counts_positions(module: nn.Module) -> bool:
    """Whether a forward of this module takes no positions."""
    return "position_ids" not in inspect.signature(module.forward).parameters


def hand_over(module: nn.Module) -> None:
    """From now on, ``position_ids`` [B, R] given to this module reach its position embeddings.

    In a call without them, the module counts as before. Does nothing to a module that takes positions.
    """
    if module in _DONE or not counts_positions(module):
        return
    _DONE.add(module)
    embeddings = [part for part in module.modules() if _is_position_embedding(part)]
    if embeddings:
        given = local()
        module.register_forward_pre_hook(_Outer(given).begin, with_kwargs=True)
        module.register_forward_hook(_Outer(given).end, always_call=True)
        for embedding in embeddings:
            embedding.register_forward_pre_hook(_Inner(given).replace, with_kwargs=True)
            embedding.register_forward_hook(_Inner(given).shape)


def _is_position_embedding(part: nn.Module) -> bool:
    return _WANTED <= set(inspect.signature(part.forward).parameters)


class _Outer:
    """Hooks of the whole module."""

    def __init__(self, given: local) -> None:
        self._given = given

    def begin(self, module, arguments, named):
        self._given.positions = named.pop("position_ids", None)
        return arguments, named

    def end(self, *_) -> None:
        self._given.positions = None


class _Inner:
    """Hooks of a position embedding, which takes positions of one row of tokens."""

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
