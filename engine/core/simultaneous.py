"""Running two functions at the same time, and timing each with a real clock."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from engine.core.threads import halved

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The result of a function, and when its work began and ended: milliseconds since both functions were started."""

    value: T
    start: float
    end: float


class Pair(ABC):
    """Runs two functions at the same time. Nothing runs between two calls."""

    @abstractmethod
    def run(self, main: Callable[[], T], side: Callable[[], U]) -> tuple[Timed[T], Timed[U]]:
        """Returns both results once both functions are complete. Raises the exception of ``main``, or else of ``side``;
        by then the other function has ended as well."""

    def close(self) -> None:
        """Free the threads and memory of the pair."""


class ThreadPair(Pair):
    """Two threads on a CPU; torch releases Python's lock within its kernels.

    While both run, each computes with half of the threads. The number of threads is a setting of the process,
    so it is restored before anything else can run.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="side")

    def run(self, main, side):
        began = time.perf_counter()

        def timed(work: Callable[[], T]) -> Timed[T]:
            start = time.perf_counter()
            value = work()
            return Timed(value, (start - began) * 1000, (time.perf_counter() - began) * 1000)

        with halved():
            side_work = self._pool.submit(timed, side)
            try:
                own = timed(main)
            finally:
                wait([side_work])
        return own, side_work.result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class StreamPair(Pair):
    """Two CUDA streams, fed by one thread: ``main`` is launched first, so that the device works on it while the thread
    goes on to ``side``. Times are measured on the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._side = torch.cuda.Stream(device)

    def run(self, main, side):
        here = torch.cuda.current_stream(self._device)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        marks[0].record(here)
        self._side.wait_stream(here)
        try:
            own = main()
            marks[1].record(here)
            with torch.cuda.stream(self._side):
                marks[2].record(self._side)
                side_value = side()
                marks[3].record(self._side)
        finally:
            here.wait_stream(self._side)
            torch.cuda.synchronize(self._device)
        end, *others = (marks[0].elapsed_time(mark) for mark in marks[1:])
        return Timed(own, 0.0, end), Timed(side_value, *others)


def pair_on(device: torch.device) -> Pair:
    """The ``Pair`` for this device."""
    return StreamPair(device) if device.type == "cuda" else ThreadPair()
