"""Measurements that need a GPU: the suites ``kernels`` and ``gpu``."""

from engine.bench_gpu.gpu import run_gpu
from engine.bench_gpu.kernels import run_kernels

__all__ = ["run_gpu", "run_kernels"]
