"""The part of ``torch.cuda`` that a capture needs, on a CPU, with a check of a rule that CUDA does not report.

The end of a graph frees the workspaces of its stream, and the other graphs of that stream contain
their addresses. So a replay is reported if another graph of the stream has ended since the capture.
"""

import contextlib
import itertools
import weakref

import torch

from tests.engine.tape import Tape


class FakeCuda:
    """Takes the place of ``torch.cuda`` for one test.

    ended: how many graphs of each stream have ended. dangling: how many replays came after such an end. alive: how
    many graphs exist. captured_on: the stream of each capture. most_at_once: the most captures that overlapped.
    fails: called at the beginning of each capture; may raise.
    """

    def __init__(self, monkeypatch) -> None:
        self.ended: dict[int, int] = {}
        self.dangling = 0
        self.captured_on: list[int] = []
        self.streams: list = []
        self.alive = 0
        self.at_once = self.most_at_once = 0
        self.fails = lambda: None
        self.current = [FakeStream(self, 0)]
        fake = self
        handles = itertools.cycle(range(1, 33))

        class Stream(FakeStream):
            def __init__(self, device=None, priority=0) -> None:
                super().__init__(fake, next(handles))
                fake.streams.append(self)

        class CUDAGraph:
            def __init__(self) -> None:
                self.tape, self.handle, self.born = None, None, None

            def replay(self) -> None:
                fake.dangling += fake.ended.get(self.handle, 0) != self.born
                self.tape.replay()

        @contextlib.contextmanager
        def graph(cuda_graph, pool=None, stream=None, capture_error_mode="global"):
            fake.at_once += 1
            fake.most_at_once = max(fake.most_at_once, fake.at_once)
            fake.synchronize()
            cuda_graph.handle = handle = stream.cuda_stream
            fake.alive += 1
            weakref.finalize(cuda_graph, fake.gone, handle)
            try:
                fake.fails()
                with Tape() as cuda_graph.tape:
                    yield
            finally:
                fake.at_once -= 1
            cuda_graph.born = fake.ended.get(handle, 0)
            fake.captured_on.append(handle)

        @contextlib.contextmanager
        def stream(chosen):
            fake.current.append(chosen)
            yield
            fake.current.pop()

        for name, made in {
            "Stream": Stream,
            "CUDAGraph": CUDAGraph,
            "graph": graph,
            "stream": stream,
            "current_stream": lambda device=None: fake.current[-1],
            "synchronize": fake.synchronize,
            "graph_pool_handle": object,
        }.items():
            monkeypatch.setattr(torch.cuda, name, made)

    def gone(self, handle: int) -> None:
        self.alive -= 1
        self.ended[handle] = self.ended.get(handle, 0) + 1

    def synchronize(self, device=None) -> None:
        """A CPU has no pending work."""


class FakeStream:
    def __init__(self, cuda: FakeCuda, handle: int) -> None:
        self.cuda_stream = handle

    def wait_stream(self, other: "FakeStream") -> None:
        """Everything runs in order on a CPU."""
