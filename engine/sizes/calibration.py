"""Stored measurements of what a step costs: when a measurement is abandoned, how results are stored, and when later
runs cast doubt on them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter, thread_time

from engine.remembered import Remembered

SECONDS = 2.0
SHARE = 0.75
"""If the measuring thread gets less than this share of a core, other processes are taken to be busy on the machine."""


class Patience:
    """Decides when a measurement is abandoned. Beside other busy processes a measurement takes long and is unreliable.
    The time counts from the construction of the object.
    clocks: wall time, and the time that this thread has spent on a core."""

    def __init__(
        self, clocks: tuple[Callable[[], float], Callable[[], float]] = (perf_counter, thread_time)
    ) -> None:
        self._clocks = clocks
        self._began = [clock() for clock in clocks]

    @property
    def over(self) -> bool:
        wall, own = (
            clock() - began for clock, began in zip(self._clocks, self._began, strict=True)
        )
        return wall > SECONDS and own < SHARE * wall


DOUBTS = 3  # contradictions in a row after which an entry no longer counts
TOLERATED = 2.0  # how many times slower or faster a run's steps may be, on a machine without noise
MOST_NOISE = 4.0
FEWEST_STEPS = 8  # the fewest steps of a run that may contradict an entry
MEMORY = Remembered("step_costs.json")
_WRITING = threading.Lock()


@dataclass(frozen=True)
class Measurement:
    """What a drafter's steps cost, by draft size.
    costs: size -> milliseconds of a step. gains: size -> tokens per step, measured only for models that come without
    gains. noise: how much a cost varied, as a share of the cost. doubts: how many of the latest runs, one after
    another, contradicted the costs."""

    costs: Mapping[int, float]
    gains: Mapping[int, float] = field(default_factory=dict)
    noise: float = 0.0
    doubts: int = 0

    @classmethod
    def of(cls, content: object) -> Measurement | None:
        """The measurement in an entry of the stored file; None if the entry is invalid."""
        try:
            tables = [
                {int(size): float(value) for size, value in content[name].items()}  # type: ignore[index]
                for name in ("costs", "gains")
            ]
            noise, doubts = float(content["noise"]), int(content["doubts"])  # type: ignore[index]
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
            return None
        numbers = [value for table in tables for value in (*table, *table.values())]
        sound = all(0 < number < math.inf for number in numbers) and 0 <= noise < math.inf
        return cls(*tables, min(noise, MOST_NOISE), doubts) if tables[0] and sound else None

    @property
    def doubtful(self) -> bool:
        return self.doubts >= DOUBTS

    def contradicted_by(self, size: int, milliseconds: float) -> bool:
        """Whether a run whose steps of this size took ``milliseconds`` each contradicts the stored cost."""
        bound = TOLERATED + 3 * self.noise
        ratio = milliseconds / self.costs.get(size, milliseconds)
        return not 1 / bound <= ratio <= bound

    def after(self, old: Measurement | None) -> Measurement:
        """A copy of this new measurement whose noise is at least half of the largest relative change since the old
        one."""
        if old is None:
            return self
        changes = [
            max(cost / old.costs[size], old.costs[size] / cost) - 1
            for size, cost in self.costs.items()
            if size in old.costs
        ]
        change = max(changes, default=0.0) / 2
        return replace(self, noise=min(max(self.noise, change), MOST_NOISE))


def recall(key: str) -> Measurement | None:
    """The measurement that is stored under this key, even if it is doubtful; None if there is none."""
    return Measurement.of(MEMORY.read().get(key))


def remember(key: str, measured: Measurement) -> bool:
    """Store the measurement under this key. Returns whether the file could be written."""
    with _WRITING:
        return MEMORY.write(MEMORY.read() | {key: asdict(measured)})


def observed(key: str, size: int, steps: int, milliseconds: float) -> None:
    """Compare a finished run with the stored cost: its ``steps`` steps of this size took ``milliseconds`` each on
    average. A contradiction raises the measurement's ``doubts``, agreement resets them to 0."""
    entry = recall(key)
    if entry is None or steps < FEWEST_STEPS or milliseconds <= 0:
        return
    doubts = entry.doubts + 1 if entry.contradicted_by(size, milliseconds) else 0
    if doubts != entry.doubts:
        remember(key, replace(entry, doubts=doubts))
