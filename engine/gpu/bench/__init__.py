"""Measurements that need a GPU: the suites ``kernels`` and ``gpu``."""

from engine.gpu.bench.kernels import run_kernels
from engine.gpu.bench.machine import run_gpu
from engine.gpu.bench.timing import require_gpu

__all__ = ["require_gpu", "run_gpu", "run_kernels"]
