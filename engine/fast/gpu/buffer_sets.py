"""KV buffers, together with the passes captured on them. Both outlive a run, because capturing takes time."""

import logging
import threading
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from queue import SimpleQueue

import torch
from torch import Tensor, nn

from engine.fast.gpu.capture import Recorder, Recording
from engine.fast.gpu.host_free import HostFree, WaitsForHost
from engine.fast.gpu.inputs import StepInputs
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.kernels.lang import power_of_two

MARGIN = 256  # columns after the text: the scratch rows of the largest pass
SMALLEST, COARSE = 512, 4096  # capacities are powers of two, then multiples of COARSE
MOST_FREE = 5  # buffer sets that wait for the next run: as many as the Compare tab has lanes
ATTEMPTS = 2  # to capture a pass: the first may fail for a temporary reason
MOST_FAILED = 4  # failed captures after which, if none has succeeded, no more are tried

_log = logging.getLogger(__name__)


@dataclass
class Pass:
    """A pass as a function of static buffers. The caller loads ``inputs`` and ``extra_input`` before the pass runs.

    extra_input: numbers that the pass reads and that are not int32, or None. recording: the captured pass, or None.
    attempts: the number of captures that failed.
    """

    inputs: StepInputs
    extra_input: Tensor | None
    function: Callable[[], object]
    recording: Recording | None = None
    attempts: int = 0

    @property
    def given_up(self) -> bool:
        """Whether so many captures of this pass have failed that it is no longer captured."""
        return self.attempts >= ATTEMPTS


class BufferSet:
    """The buffers of one sequence, or of several side by side, and the passes over them.

    The subclasses ``TextBuffers`` and ``BlockBuffers`` define the passes. Each pass has a key. If the pass draws or
    judges tokens, the key begins with a tuple of laws: the objects that describe how tokens are drawn or judged, such
    as ``JudgingKey``. A law has a property ``greedy``.
    """

    def __init__(self, sets: "BufferSets", capacity: int, sequences: int = 1) -> None:
        self.cache = StaticCache.empty(sets.layers, capacity, sequences)
        self.sequences = sequences
        self._sets = sets
        self._passes: dict[tuple, Pass] = {}
        self._capacity = capacity

    def retire(self) -> None:
        """Drop all passes of this set, and retire their recordings."""
        self._drop([*self._passes])

    def _drop(self, keys: Collection[tuple]) -> None:
        dropped = [self._passes.pop(key).recording for key in keys]
        self._sets.recorder.retire([recording for recording in dropped if recording is not None])

    def _forget_laws_but(self, laws: tuple) -> None:
        """Drop the passes that draw or judge tokens by other laws than these, because each pass holds a graph, and
        users may choose any number of sampling settings. Passes whose laws are all greedy stay."""
        keys = [key for key in self._passes if isinstance(key[0], tuple)]
        unused = [key for key in keys if key[0] != laws]
        self._drop([key for key in unused if not all(law.greedy for law in key[0])])

    def _make_room(self, columns: int) -> None:
        self.cache.reserve(columns)
        if self.cache.capacity != self._capacity:  # the buffers have moved
            self.retire()
            self._capacity = self.cache.capacity

    def _given_up(self, key: tuple) -> bool:
        """Whether the pass with this key exists but is no longer captured."""
        return key in self._passes and self._passes[key].given_up

    def _run(self, key: tuple):
        """Run the pass with this key, whose inputs have been loaded. Its result is valid until the set's next pass."""
        return self._sets.run(self._passes[key], self)


class BufferSets:
    """All buffer sets of one model.

    kind: the class of the sets. captures: whether passes become CUDA graphs on CUDA; on other devices they are plain
    function calls. usable: False once MOST_FAILED captures have failed and none has succeeded.
    """

    def __init__(
        self,
        kind: type[BufferSet],
        module: nn.Module,
        layers: int,
        name: str,
        device: torch.device,
        captures: bool = True,
    ) -> None:
        self._kind, self.module, self.layers, self.device = kind, module, layers, device
        self.captures = captures and self.device.type == "cuda"
        self.usable = True
        self.recorder = Recorder(device)
        self._captured = self._failed = 0
        self._said: set[str] = set()
        self._name = name
        self._free: list[BufferSet] = []
        self._returned: SimpleQueue[BufferSet] = SimpleQueue()
        self._guard = threading.Lock()

    def take(self, owner: object, capacity: int, sequences: int = 1) -> BufferSet:
        """Lend ``owner`` a buffer set for this many sequences, with at least ``capacity`` + MARGIN columns. The set
        comes back when Python frees the owner."""
        capacity = _rounded(capacity + MARGIN)
        with self._guard:
            self._collect()
            fitting = [
                buffers
                for buffers in self._free
                if buffers.sequences == sequences and buffers.cache.capacity >= capacity
            ]
            chosen = min(fitting, key=lambda buffers: buffers.cache.capacity, default=None)
            if chosen is not None:
                self._free.remove(chosen)
        chosen = chosen or self._kind(self, capacity, sequences)
        # a queue, not the lock: an owner may be finalized at any moment, even inside this method
        weakref.finalize(owner, self._returned.put, chosen).atexit = False
        return chosen

    def _collect(self) -> None:
        """Take back the sets whose owners have been freed. If more than MOST_FREE sets are then free, drop the oldest
        of them."""
        while not self._returned.empty():
            buffers = self._returned.get()
            buffers.cache.keep(0, [])
            self._free.append(buffers)
        for oldest in self._free[:-MOST_FREE]:
            oldest.retire()
        del self._free[:-MOST_FREE]

    def run(self, own_pass: Pass, owner: BufferSet) -> object:
        """Return the result of the pass: replay its CUDA graph if there is one or it can be captured now, else call its
        function."""
        if not (self.captures and self.usable) or own_pass.given_up:
            return own_pass.function()
        with self.recorder.lock:
            if own_pass.recording is None or own_pass.recording.ended:
                own_pass.recording = self._recorded(own_pass, owner)
            if own_pass.recording is not None:
                return own_pass.recording()
        return own_pass.function()

    def _recorded(self, own_pass: Pass, owner: BufferSet) -> Recording | None:
        """The captured pass; None if the capture failed, for a reason that is logged."""
        try:
            with HostFree():
                own_pass.function()
            recording = self.recorder.record(own_pass.function, owner)
        except Exception as error:  # noqa: BLE001 - no failed capture may end a run
            # a pass that waits for the host always will; other reasons may be gone the next time
            own_pass.attempts = (
                ATTEMPTS if isinstance(error, WaitsForHost) else own_pass.attempts + 1
            )
            reason = (str(error) or type(error).__name__).splitlines()[0]
            if reason not in self._said:
                _log.warning("%s runs a pass without a CUDA graph: %s.", self._name, reason)
                self._said.add(reason)
            self._failed += 1
            self.usable = self._captured > 0 or self._failed < MOST_FAILED
            return None
        self._captured += 1
        return recording


def _rounded(capacity: int) -> int:
    if capacity <= COARSE:
        return power_of_two(capacity, SMALLEST)
    return -(-capacity // COARSE) * COARSE
