"""Measurements that need a GPU: the suites ``kernels``, ``gpu`` and ``pieces``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.bench.command import check_writable
from engine.bench.gpu.ablation import run_pieces
from engine.bench.gpu.kernels import run_kernels
from engine.bench.gpu.machine import run_gpu
from engine.bench.gpu.timing import require_gpu
from engine.parts.loading import ModelPaths

Workloads = Mapping[str, Sequence[dict]]


def kernels(models: ModelPaths, workloads: Workloads, quick: bool, out: str | None) -> None:
    """Measure every kernel against its floor. quick: without trying other plans."""
    _check(out)
    run_kernels(out, tune=not quick)


def gpu(models: ModelPaths, workloads: Workloads, quick: bool, out: str | None) -> None:
    """Measure steps and whole runs, on prompts of every kind in turn."""
    _check(out)
    run_gpu(models, _mixed(workloads), out)


def pieces(models: ModelPaths, workloads: Workloads, quick: bool, out: str | None) -> None:
    """Measure the engine without one of its pieces for GPUs in turn. quick: fewer and shorter texts."""
    _check(out)
    run_pieces(models, _mixed(workloads), quick, out)


def _mixed(workloads: Workloads) -> list[str]:
    return [card["prompt"] for cards in zip(*workloads.values(), strict=False) for card in cards]


def _check(out: str | None) -> None:
    require_gpu()
    if out is not None:
        check_writable(Path(out))
