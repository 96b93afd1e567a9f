"""Finds operations that make host and device wait for each other.

A CUDA graph can hold no operation whose launches depend on numbers on the device, and no copy between host and device.
Within ``HostFree`` such an operation raises an error that names it, while a failed capture names no operation.
"""

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_WAITING = frozenset(
    f"aten::{name}"
    for name in (
        "_local_scalar_dense",
        "bincount",
        "equal",
        "is_nonzero",
        "item",
        "masked_select",
        "nonzero",
        "repeat_interleave",
        "unique_consecutive",
        "unique_dim",
        "_unique2",
    )
)
_INDEXING = frozenset(
    ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
)
_MOVING = frozenset(("aten::_to_copy", "aten::copy_"))


class WaitsForHost(RuntimeError):
    """An operation would make the host and the device wait for each other. The message names it."""


class HostFree(TorchDispatchMode):
    """A context in which an operation that makes host and device wait for each other raises WaitsForHost instead."""

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function._schema.name
        if name in _WAITING:
            raise WaitsForHost(f"{name} waits for a number from the device")
        if name in _INDEXING and any(_is_mask(index) for index in arguments[1]):
            raise WaitsForHost(f"{name} with a mask waits for the number of its elements")
        if name in _MOVING and len(_devices(arguments, named or {})) > 1:
            raise WaitsForHost(f"{name} copies between host and device")
        return function(*arguments, **(named or {}))


def _is_mask(index) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def _devices(arguments, named: dict) -> set[str]:
    """The types of the devices, such as "cuda", of an operation's tensor arguments and of its ``device`` argument."""
    types = {argument.device.type for argument in arguments if isinstance(argument, Tensor)}
    target = named.get("device")
    return types if target is None else types | {torch.device(target).type}
