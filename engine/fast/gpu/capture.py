"""Captures functions of static buffers as CUDA graphs, and decides when these graphs may be freed.

cuBLAS keeps one workspace for each pair of thread and stream, and a captured graph contains the address of such a
workspace. Freeing any graph frees the workspaces of the stream on which that graph was captured (from torch 2.12 on;
pytorch issue 193402). A graph therefore must not be freed while another graph of its stream may still be replayed. Two
rules follow: each model captures on a stream of its own, and all graphs of a model are freed together.
"""

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import ClassVar

import torch

WARM_UP = 2  # runs before the capture: kernels are compiled and workspaces allocated
MOST_RETIRED = 32  # graphs that are no longer needed and wait until all end together
STREAMS = 32  # torch hands out this many high-priority streams in turn

_CAPTURING = threading.RLock()
"""One capture at a time in the process. A capture begins with a wait for the whole device, and such
a wait breaks a capture that runs in another thread."""


class CaptureStream:
    """A CUDA stream of the high-priority pool that no other living CaptureStream has.

    Eager work and the captures of other code are on streams of default priority, so they never share this stream.
    Raises RuntimeError if all STREAMS streams are in use.
    """

    _taken: ClassVar[set[int]] = set()

    def __init__(self, device: torch.device) -> None:
        for _ in range(STREAMS):
            self.stream = torch.cuda.Stream(device, priority=-1)
            handle = self.stream.cuda_stream
            if handle not in self._taken:
                self._taken.add(handle)
                weakref.finalize(self, self._taken.discard, handle).atexit = False
                return
        raise RuntimeError(f"all {STREAMS} streams for captures are in use")


class Recording:
    """A captured function. A call replays the graph and returns the function's static result.

    ended: whether the graph has been freed; then the function must be captured again.
    """

    def __init__(self, stream: CaptureStream) -> None:
        self.graph, self.result = torch.cuda.CUDAGraph(), None
        self._stream = stream  # stays reserved as long as the graph exists

    @property
    def ended(self) -> bool:
        return self.graph is None

    def __call__(self) -> object:
        self.graph.replay()
        return self.result

    def end(self) -> None:
        self.graph = self.result = None


class Recorder:
    """Captures the passes of one model, all on one stream.

    lock: held during every capture and every replay. Without the lock, a thread could free a graph between another
    thread's check that the graph exists and its replay.
    """

    def __init__(self, device: torch.device) -> None:
        self.lock = threading.RLock()
        self._device = device
        self._stream: CaptureStream | None = None
        self._recordings: list[Recording] = []  # every graph of the stream, including retired ones
        self._retired = 0
        self._pools: weakref.WeakKeyDictionary[Hashable, object] = weakref.WeakKeyDictionary()

    def record(self, function: Callable[[], object], owner: Hashable) -> Recording:
        """Run ``function`` to warm it up, then capture it; returns the recording.

        Graphs of the same owner share memory: the result of a graph is valid until another graph of that owner is
        replayed. Raises whatever CUDA or a kernel compiler raises."""
        with self.lock, _CAPTURING:
            if self._retired > MOST_RETIRED:
                self.end_all()
            self._stream = self._stream or CaptureStream(self._device)
            if owner not in self._pools:
                self._pools[owner] = torch.cuda.graph_pool_handle()
            recording = Recording(self._stream)
            # kept before the capture: even if the capture fails, its graph must not end alone
            self._recordings.append(recording)
            try:
                recording.result = _captured(
                    recording.graph, function, self._stream.stream, self._pools[owner]
                )
            except BaseException:
                self._retired += 1
                raise
            return recording

    def retire(self, recordings: list[Recording]) -> None:
        """Release the results of recordings that are no longer needed. Their graphs stay in memory until all graphs of
        this recorder are freed together."""
        with self.lock:
            for recording in recordings:
                recording.result = None
            self._retired += len(recordings)

    def end_all(self) -> None:
        """Free every graph of this recorder, and with the graphs the cuBLAS workspaces of the stream."""
        with self.lock, _CAPTURING:
            torch.cuda.synchronize(self._device)
            for recording in self._recordings:
                recording.end()
            self._recordings.clear()
            self._pools.clear()  # a pool that no graph uses any more cannot be captured into
            self._retired = 0


def _captured(graph, function: Callable[[], object], stream, pool) -> object:
    """Warm the function up and capture it, both on one stream, so that cuBLAS allocates its workspace outside the
    graph's memory. Returns the function's result. The caller's stream becomes current again even if the capture fails,
    which torch does not ensure."""
    here = torch.cuda.current_stream()
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            function()
    here.wait_stream(stream)
    # only this thread is bound by the rules of a capture: others may draw, load or measure
    with (
        torch.cuda.stream(here),
        torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
    ):
        return function()
