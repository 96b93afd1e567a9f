"""Imports Triton if it is installed. Without Triton, the modules of the kernels can still be imported."""

import logging
from functools import cache

import torch

from engine.fast.kernels.hardware import OLDEST

try:
    import triton
    import triton.language as tl

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

    class _Absent:
        """Takes the place of the Triton module if Triton is missing, and of everything in that module, decorators
        included."""

        def __getattr__(self, name: str):
            return self

        def __call__(self, *arguments, **named):
            bare = len(arguments) == 1 and not named and callable(arguments[0])
            return arguments[0] if bare else self

    triton = tl = _Absent()

__all__ = ["AVAILABLE", "on_gpu", "power_of_two", "runs_on", "tl", "triton"]

_log = logging.getLogger(__name__)


def on_gpu(tensor: torch.Tensor) -> bool:
    """Whether Triton's kernels run on this tensor's device."""
    return tensor.is_cuda and runs_on(tensor.device)


@cache
def runs_on(device: torch.device) -> bool:
    """Whether kernels can be built and launched on this device; if not, the reason is logged once.

    Triton needs a driver that it supports, a C compiler and Python's headers. If one of these is missing, the first
    launch of any kernel raises an error, whose type depends on the missing part. GPUs older than Ampere are refused,
    because their shared memory is too small for the plans.
    """
    try:
        if not AVAILABLE:
            raise ImportError("Triton is not installed")
        if device.type == "cuda" and torch.cuda.get_device_capability(device)[0] < OLDEST:
            raise RuntimeError(f"The kernels need compute capability {OLDEST}.0")
        _mark[(1,)](torch.empty(1, dtype=torch.int32, device=device))
    except Exception as error:  # noqa: BLE001 - of the compiler, a subprocess, the driver
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        _log.warning("Nothing runs in Triton kernels on %s. %s", device, reason)
        return False
    return True


@triton.jit
def _mark(place):
    tl.store(place, 1)


def power_of_two(number: int, least: int = 1) -> int:
    """The smallest power of two that is at least ``number`` and at least ``least``."""
    return max(least, 1 << max(number - 1, 0).bit_length())
