"""Measurements that need a GPU: the suites ``kernels`` and ``gpu``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.bench.command import check_writable
from engine.gpu.bench.kernels import run_kernels
from engine.gpu.bench.machine import run_gpu
from engine.gpu.bench.timing import require_gpu
from engine.parts.loading import ModelPaths

Workloads = Mapping[str, Sequence[dict]]


def kernels(models: ModelPaths, workloads: Workloads, quick: bool, out: str | None) -> None:
    """Measure every kernel against its floor. quick: without trying other plans."""
    _check(out)
    run_kernels(out, tune=not quick)


def gpu(models: ModelPaths, workloads: Workloads, quick: bool, out: str | None) -> None:
    """Measure steps and whole runs, on prompts of every kind in turn."""
    _check(out)
    mixed = [card["prompt"] for cards in zip(*workloads.values(), strict=False) for card in cards]
    run_gpu(models, mixed, out)


def _check(out: str | None) -> None:
    require_gpu()
    if out is not None:
        check_writable(Path(out))
