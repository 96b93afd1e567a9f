"""Calls compiled graphs with NumPy arrays."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import TypeVar

import numpy as np

from engine.core.threads import is_halved
from engine.fast.cpu.budget import Family
from engine.fast.cpu.core_count import threads
from engine.fast.cpu.pace import PACE, Shortest
from engine.fast.cpu.store import Compiled, in_one_line

T = TypeVar("T")
log = logging.getLogger(__name__)

SMALL = 2**14
"""An argument of up to this many elements is copied into memory that the graph keeps for the argument of this index and
shape. That takes less time than giving the graph a new tensor."""
MOST_HALVED = 10**8
"""The largest size, in bytes, of a graph that is compiled a second time, for half of the threads. The second graph
holds the weights once more, which would be too much for larger graphs."""
MOST_PLACES = 64
"""The most pieces of memory that a graph keeps for its small arguments, one for each argument and shape."""


def shared(array: np.ndarray):
    """An OpenVINO tensor over the array's memory; the array must be contiguous."""
    import openvino

    return openvino.Tensor(array, shared_memory=True)


class Calls:
    """A compiled graph, called by one thread at a time. It runs on half of the process's threads while another piece of
    work runs at the same time (``engine.core.threads.halved``), and while other processes slow it down
    (``engine.fast.cpu.pace``)."""

    def __init__(self, graph: Compiled) -> None:
        self._graph, self._lock = graph, Lock()
        self._whole = _Request(graph.model)
        self._halved: Family[_Half] = Family()
        self._shortest = Shortest()

    @property
    def nbytes(self) -> int:
        """The bytes of memory that the graph takes, without the second graph on half of the threads."""
        return self._graph.nbytes

    @property
    def stored(self) -> bool:
        """Whether the graph reads matrices of 4 or 8 bits as they are stored."""
        return self._graph.stored

    def __call__(
        self,
        given: Sequence[np.ndarray],
        wanted: Sequence[int],
        take: Callable[..., T],
        columns: list | None = None,
    ) -> T:
        """Run the graph, and return the result of ``take`` on the outputs with the indices ``wanted``.

        given: the first arguments. columns: the other arguments, as OpenVINO tensors; they are handed over only if the
        list is another object than in the last call. take: must copy the outputs, because the next call overwrites
        them.
        """
        with self._lock:
            if is_halved():
                return take(*self._request(True)(given, wanted, columns))
            half = PACE.half
            request = self._request(half)
            began = perf_counter()
            outputs = request(given, wanted, columns)
            seconds = perf_counter() - began
            PACE.saw(self._shortest.slowness(given[0].shape, seconds, not half))
            return take(*outputs)

    def _request(self, half: bool) -> "_Request":
        """Return the inference request of the graph on all threads, or, if ``half`` is true, of the second graph on
        half of the threads. There is no second graph if there is only one thread, if the graph is too large, or if the
        budget has no room."""
        if not half or threads() == 1 or self.nbytes > MOST_HALVED:
            return self._whole
        half_graph = self._halved.of("half", self._half)
        return self._whole if half_graph is None else half_graph.request

    def _half(self) -> "_Half | None":
        try:
            request = _Request(self._graph.on_threads(threads() // 2))
        except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind; its file may be gone
            log.info("A graph stays on all threads: %s", in_one_line(error))
            return None
        return _Half(request, self.nbytes)


@dataclass(frozen=True)
class _Half:
    request: "_Request"
    nbytes: int


class _Request:
    """An OpenVINO inference request of a compiled graph, which still holds the arguments of its last call."""

    def __init__(self, model) -> None:
        self._request = model.create_infer_request()
        self._places: dict[tuple, tuple[np.ndarray, object]] = {}  # by argument and shape
        self._given: dict[int, object] = {}
        self._columns: list = []

    def __call__(
        self, given: Sequence[np.ndarray], wanted: Sequence[int], columns: list | None
    ) -> list[np.ndarray]:
        for index, array in enumerate(given):
            self._hand_over(index, array)
        if columns is None:
            self._columns = []  # the places of columns hold other arguments now
        elif columns is not self._columns:
            for index, tensor in enumerate(columns, start=len(given)):
                self._request.set_input_tensor(index, tensor)
                self._given.pop(index, None)
            self._columns = columns
        self._request.infer(share_outputs=True)
        return [self._request.get_output_tensor(index).data for index in wanted]

    def _hand_over(self, index: int, array: np.ndarray) -> None:
        if array.size > SMALL:
            place = shared(np.ascontiguousarray(array))
        else:
            key = index, array.shape
            if key not in self._places:
                if len(self._places) >= MOST_PLACES:
                    self._places.clear()
                own = np.empty_like(array, order="C")
                self._places[key] = own, shared(own)
            own, place = self._places[key]
            np.copyto(own, array)
        if self._given.get(index) is not place:
            self._request.set_input_tensor(index, place)
            self._given[index] = place
