"""Support for ZeroGPU, where Hugging Face lends a GPU for one call at a time, in a forked process.

Import this before torch touches CUDA: on ZeroGPU the package ``spaces`` stands between torch and CUDA. Elsewhere, with
the package or without, ``gpu`` leaves a function as it is.
"""

from collections.abc import Callable

try:
    import spaces
except ImportError:  # an ordinary machine
    spaces = None


def on_zero() -> bool:
    """Return whether this is a ZeroGPU Space."""
    return spaces is not None and spaces.config.Config.zero_gpu


def gpu(seconds: Callable[..., int]) -> Callable[[Callable], Callable]:
    """Return a decorator with which each call of a function holds the GPU.

    seconds: returns the most seconds that a call may take, from the call's arguments.
    """
    return spaces.GPU(duration=seconds) if spaces else lambda function: function
