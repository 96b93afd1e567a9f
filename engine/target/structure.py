"""Copies of modules that share their weights."""

from __future__ import annotations

import copy
from inspect import isfunction

from torch import nn


def structure_of(module: nn.Module) -> nn.Module:
    """A copy of the module with the same weights, not copies of them.

    A method that was replaced in one part alone, as ``engine.target.hybrid`` and ``engine.target.by_length`` do, is that of
    its class in the copy: the replacement works with the part that it was made for. Raises TypeError for a module that
    holds something that cannot be copied.
    """
    memo = {id(one): one for one in (*module.parameters(), *module.buffers())}
    replaced = {
        id(part.__dict__[name]): None for part in module.modules() for name in _replaced(part)
    }
    made = copy.deepcopy(module, memo | replaced)
    for part in made.modules():
        for name in _methods(part):
            del part.__dict__[name]
    return made


def _replaced(part: nn.Module) -> list[str]:
    return [name for name in _methods(part) if callable(part.__dict__[name])]


def _methods(part: nn.Module) -> list[str]:
    """The methods of a part's class that the part has an attribute of its own in the place of."""
    return [name for name in part.__dict__ if isfunction(getattr(type(part), name, None))]
