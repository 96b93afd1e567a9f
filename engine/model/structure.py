"""Copies of modules that share their weights."""

from __future__ import annotations

import copy
from inspect import isfunction

from torch import nn


def structure_of(module: nn.Module) -> nn.Module:
    """A copy of the module that shares the module's weights.

    ``engine.model.hybrid`` and ``engine.model.by_length`` replace methods of single parts of a module. The parts of the
    copy get back the methods of their classes, because a replaced method works only with the part for which it was
    written. Raises TypeError if the module holds an object that cannot be copied.
    """
    memo = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    replaced = {
        id(part.__dict__[name]): None for part in module.modules() for name in _replaced(part)
    }
    duplicate = copy.deepcopy(module, memo | replaced)
    for part in duplicate.modules():
        for name in _methods(part):
            del part.__dict__[name]
    return duplicate


def _replaced(part: nn.Module) -> list[str]:
    return [name for name in _methods(part) if callable(part.__dict__[name])]


def _methods(part: nn.Module) -> list[str]:
    """The names of those methods of a part's class that an attribute of the part itself replaces."""
    return [name for name in part.__dict__ if isfunction(getattr(type(part), name, None))]
