"""Picks the number format of products by measuring which formats this processor is fast at."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext

import torch

from engine.training import products

WORTH = 1.3  # a format must be this many times as fast as float32 to replace it


def _seconds(dtype: torch.dtype, device: str, multiply: Callable = torch.mm) -> float:
    """The shortest of twelve timings of one product."""
    a, b = (torch.randn(*shape, device=device).to(dtype) for shape in ((1024, 384), (384, 1024)))
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        multiply(a, b)
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def pick_precision(device: str = "cpu") -> torch.dtype:
    """bfloat16 where it is worth it, else float32."""
    faster = _seconds(torch.float32, device) / _seconds(torch.bfloat16, device)
    return torch.bfloat16 if faster > WORTH else torch.float32


def pick_cpu_format() -> torch.dtype:
    """The same for the trainer whose processes have one thread each, which can also multiply in fp16
    (`products`)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = {d: _seconds(d, "cpu") for d in (torch.float32, torch.bfloat16)}
    if products.library():
        seconds[torch.float16] = _seconds(torch.float16, "cpu", products.product)
    torch.set_num_threads(threads)
    fastest = min(seconds, key=seconds.get)
    return fastest if seconds[torch.float32] / seconds[fastest] > WORTH else torch.float32


def autocast(dtype: torch.dtype, device: str = "cpu"):
    return torch.autocast(device, dtype) if dtype != torch.float32 else nullcontext()
