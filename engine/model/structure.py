"""Copies of modules that share their weights."""

from __future__ import annotations

import copy
from inspect import isfunction

from torch import nn


def structure_of(module: nn.Module) -> nn.Module:
    """A copy of the module that shares the module's weights.

    If a method was replaced on a single part, as ``engine.model.hybrid`` and ``engine.model.by_length`` do, the copy
    has the method of the class again, because the replacement works with the part that it was made for. Raises
    TypeError for a module that holds something that cannot be copied.
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
    """The methods of a part's class that are replaced by an attribute of the part itself."""
    return [name for name in part.__dict__ if isfunction(getattr(type(part), name, None))]
