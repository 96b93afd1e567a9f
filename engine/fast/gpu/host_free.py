"""Finds operations that make host and device wait for each other.

A CUDA graph can hold no operation whose launches depend on numbers on the device, and no copy between
host and device. Within ``HostFree`` such an operation raises an error that names it; a capture would
merely fail.
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
    """Names the operation that would make the host and the device wait for each other."""


class HostFree(TorchDispatchMode):
    """A context in which such an operation raises WaitsForHost instead of running."""

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
    """The kinds of device that an operation touches."""
    found = {each.device.type for each in arguments if isinstance(each, Tensor)}
    given = named.get("device")
    return found if given is None else found | {torch.device(given).type}
