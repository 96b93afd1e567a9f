"""The kernels, launched where they can run: under Triton's interpreter on the CPU, compiled on a GPU where there is one.

Tests make their tensors on the CPU and compare there. ``there`` and ``back`` move whatever holds tensors, with
strides and all; under the interpreter nothing moves.
"""

import dataclasses
import functools
import os

import torch

from engine.fast.kernels import kv_commit, position_noise, tree_attention, truncation, verify_tree

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CPU = torch.device("cpu")
DEVICE = CPU if INTERPRETED or not torch.cuda.is_available() else torch.device("cuda", 0)


def there(value):
    return value if DEVICE == CPU else _moved(value, DEVICE)


def back(value):
    return value if DEVICE == CPU else _moved(value, CPU)


def _moved(value, device: torch.device):
    if isinstance(value, torch.Tensor):
        return _with_strides(value, device)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _moved(getattr(value, f.name), device) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(one, device) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(_moved(one, device) for one in value)
    return value


def _with_strides(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy that is part of a longer row where the tensor is."""
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
    return whole.to(device).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _there(kernel):
    @functools.wraps(kernel)
    def call(*arguments, **named):
        moved = {name: there(value) for name, value in named.items()}
        return back(kernel(*map(there, arguments), **moved))

    return call


tree_attention_triton = _there(tree_attention.tree_attention_triton)
verify_tree_triton = _there(verify_tree.verify_tree_triton)
truncated_triton = _there(truncation.truncated_triton)


def kv_commit_triton(buffers, start, rows, count) -> None:
    """Moves the rows in the buffers themselves, as the kernel does."""
    moved = there(buffers)
    kv_commit.kv_commit_triton(moved, there(start), there(rows), there(count))
    buffers[:] = back(moved)


def noise_rows_triton(seed, first, count, vocabulary, **named) -> torch.Tensor:
    found = position_noise.noise_rows_triton(seed, first, count, vocabulary, DEVICE, **named)
    return back(found)
