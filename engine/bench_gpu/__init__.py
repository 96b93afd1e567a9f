"""Measurements that need a GPU: the suites ``kernels`` and ``gpu``."""

from engine.bench_gpu.gpu import run_gpu
from engine.bench_gpu.kernels import run_kernels
from engine.bench_gpu.timing import require_gpu

__all__ = ["require_gpu", "run_gpu", "run_kernels"]
