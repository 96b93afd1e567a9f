"""Triton where it is installed; where it is not, the kernels' files can still be imported."""

import torch

try:
    import triton
    import triton.language as tl

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

    class _Absent:
        """Stands for any attribute of the missing module, decorators included."""

        def __getattr__(self, name: str):
            return self

        def __call__(self, *arguments, **named):
            bare = len(arguments) == 1 and not named and callable(arguments[0])
            return arguments[0] if bare else self

    triton = tl = _Absent()

__all__ = ["AVAILABLE", "on_gpu", "power_of_two", "tl", "triton"]


def on_gpu(tensor: torch.Tensor) -> bool:
    """Whether the dispatchers take the Triton kernel for this tensor."""
    return AVAILABLE and tensor.is_cuda


def power_of_two(number: int, least: int = 1) -> int:
    """The smallest power of two that is at least ``number`` and at least ``least``."""
    return max(least, 1 << max(number - 1, 0).bit_length())
