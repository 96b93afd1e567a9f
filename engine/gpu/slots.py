"""KV buffers with the passes captured on them; they outlive a run, for capturing takes time."""

import logging
import threading
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from queue import SimpleQueue

import torch
from torch import Tensor, nn

from engine.gpu.cache import StaticCache
from engine.gpu.capture import captured
from engine.gpu.inputs import StepInputs
from engine.kernels.lang import power_of_two

MARGIN = 256  # columns behind the text: the scratch rows of the largest pass
SMALLEST, COARSE = 512, 4096  # capacities are powers of two, then multiples
MOST_FREE = 5  # slots that wait for the next run: as many as Compare has lanes

_log = logging.getLogger(__name__)


@dataclass
class Pass:
    """inputs, beside: to be loaded before ``call``, which is None until the first time.

    beside: what the pass reads that is no int32.
    """

    inputs: StepInputs
    beside: Tensor | None
    function: Callable[[], object]
    call: Callable[[], object] | None = None


class Slot:
    """The buffers of one sequence, or of several side by side, and the passes over them.

    What passes there are is the business of its kinds: ``TextSlot``, ``BlockSlot``. Where tokens are
    drawn or judged, a pass's key begins with the tuple of laws by which that happens; each says
    whether it is greedy.
    """

    def __init__(self, slots: "Slots", capacity: int, sequences: int = 1) -> None:
        self.cache = StaticCache.empty(slots.layers, capacity, sequences)
        self.sequences = sequences
        self._slots = slots
        self._passes: dict[tuple, Pass] = {}
        self._capacity = capacity
        self._pool = None

    def _drop(self, keys: Collection[tuple]) -> None:
        """Let go of these passes, once none of them is being replayed."""
        if keys and self._slots.captures:
            torch.cuda.synchronize(self._slots.device)
        for key in keys:
            del self._passes[key]
        if not self._passes:
            self._pool = None  # memory that no graph uses any more cannot be captured into

    def _forget_laws_but(self, laws: tuple) -> None:
        """Passes of other sampling settings: there is no end of those, and their graphs hold memory."""
        known = [key for key in self._passes if isinstance(key[0], tuple)]
        others = [key for key in known if key[0] != laws]
        self._drop([key for key in others if not all(law.greedy for law in key[0])])

    def _make_room(self, columns: int) -> None:
        self.cache.reserve(columns)
        if self.cache.capacity != self._capacity:  # the buffers have moved
            self._drop([*self._passes])
            self._capacity = self.cache.capacity

    def _run(self, key: tuple):
        """The result, which holds until the slot's next pass. The inputs have been loaded."""
        found = self._passes[key]
        if found.call is None:
            if self._pool is None and self._slots.captures:
                self._pool = torch.cuda.graph_pool_handle()
            found.call = self._slots.prepared(found.function, self._pool)
        return found.call()


class Slots:
    """The slots of one model.

    kind: of the slots. captures: whether passes become CUDA graphs, which they can on CUDA; else
    they are simply called. usable: False once one could not be captured.
    """

    def __init__(
        self,
        kind: type[Slot],
        module: nn.Module,
        layers: int,
        name: str,
        device: torch.device,
        captures: bool = True,
    ) -> None:
        self._kind, self.module, self.layers, self.device = kind, module, layers, device
        self.captures = captures and self.device.type == "cuda"
        self.usable = True
        self._name = name
        self._free: list[Slot] = []
        self._returned: SimpleQueue[Slot] = SimpleQueue()
        self._guard = threading.Lock()

    def take(self, owner: object, capacity: int, sequences: int = 1) -> Slot:
        """A slot of at least this capacity and a margin, for as long as its owner lives."""
        capacity = _rounded(capacity + MARGIN)
        with self._guard:
            self._collect()
            fitting = [
                slot
                for slot in self._free
                if slot.sequences == sequences and slot.cache.capacity >= capacity
            ]
            slot = min(fitting, key=lambda slot: slot.cache.capacity, default=None)
            if slot is not None:
                self._free.remove(slot)
        slot = slot or self._kind(self, capacity, sequences)
        # a queue, not the lock: an owner may be finalized in the middle of anything, this included
        weakref.finalize(owner, self._returned.put, slot).atexit = False
        return slot

    def _collect(self) -> None:
        """Take back what owners have left behind; of too many the oldest go."""
        while not self._returned.empty():
            slot = self._returned.get()
            slot.cache.keep(0, [])
            self._free.append(slot)
        del self._free[:-MOST_FREE]

    def prepared(self, function: Callable[[], object], pool) -> Callable[[], object]:
        """The function captured; or itself, where that is not wanted or not possible."""
        if not (self.captures and self.usable):
            return function
        try:
            return captured(function, pool)
        except Exception as error:  # noqa: BLE001 - no failed capture may end a run
            self.usable = False
            reason = (str(error) or type(error).__name__).splitlines()[0]
            _log.warning("%s runs without CUDA graphs: %s.", self._name, reason)
            return function


def _rounded(capacity: int) -> int:
    if capacity <= COARSE:
        return power_of_two(capacity, SMALLEST)
    return -(-capacity // COARSE) * COARSE
