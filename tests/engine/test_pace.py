"""When passes run on half of their threads."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from engine.fast.cpu import calls
from engine.fast.cpu.pace import LATEST, MOST, SLOW, STAY, Pace, Shortest, interruptions
from engine.parts.opening import language_model
from tests.engine.tiny import tiny_hf_model

QUIET, BUSY, HALF = 1.1, 4.0, 1.3


def busy_pace() -> Pace:
    """Return the pace of a process whose threads are interrupted in each pass."""
    return Pace(iter(range(10**6)).__next__)


def passes_until(pace: Pace, slowness: float, state: bool, most: int) -> int:
    """Return how many passes of this slowness it takes until ``half`` is ``state``."""
    for count in range(most):
        if pace.half == state:
            return count
        pace.saw(slowness)
    raise AssertionError(f"half is not {state} after {most} passes")


def test_a_busy_machine_is_noticed_at_once_and_tried_again_later():
    pace = busy_pace()
    for _ in range(1000):
        pace.saw(QUIET)
    assert not pace.half
    assert passes_until(pace, BUSY, True, LATEST + 1) <= LATEST
    assert passes_until(pace, HALF, False, STAY + 1) == STAY
    assert passes_until(pace, BUSY, True, LATEST + 1) == MOST + 1


def test_a_quiet_machine_gets_all_threads_back():
    pace = busy_pace()
    passes_until(pace, BUSY, True, LATEST + 1)
    passes_until(pace, HALF, False, STAY + 1)
    for _ in range(1000):
        pace.saw(QUIET)
        assert not pace.half


def test_slow_passes_change_nothing_if_they_are_few_or_nothing_interrupts_them():
    """Weights have left the caches before half of the passes, or before each. Where interruptions are not counted, every
    slow pass counts."""
    few, alone = busy_pace(), Pace(lambda: 7)
    for turn in range(1000):
        few.saw(SLOW + 0.5 if turn % 2 else QUIET)
        alone.saw(BUSY)
        assert not few.half and not alone.half
    assert passes_until(Pace(lambda: None), BUSY, True, LATEST + 1) <= LATEST


def test_other_processes_interrupt_a_thread():
    """More busy processes than cores, beside this one."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        before, end = interruptions(), time.monotonic() + 10
        if before is None:
            pytest.skip("this system does not count interruptions")
        while interruptions() == before:
            assert time.monotonic() < end
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_where_half_of_the_threads_does_not_help_it_is_tried_less_and_less():
    """Another machine shares the memory, say: all passes are slow, on however many threads."""
    pace, waits = busy_pace(), []
    for _ in range(4):
        waits.append(passes_until(pace, BUSY, True, 100 * STAY))
        passes_until(pace, BUSY, False, STAY + 1)
    assert waits[0] <= LATEST
    assert all(
        STAY * 2**turn <= wait < STAY * 2**turn + 2 * LATEST for turn, wait in enumerate(waits[1:])
    )


def test_the_shortest_time_of_each_shape_is_what_counts():
    times = Shortest()
    assert times.slowness((1, 8), 5.0, True) == 1.0
    assert times.slowness((1, 8), 1.0, True) == 1.0
    assert times.slowness((5, 8), 3.0, True) == 1.0
    assert times.slowness((1, 8), 4.0, True) == pytest.approx(4, rel=0.01)
    assert times.slowness((1, 8), 0.5, False) == pytest.approx(0.5, rel=0.01)
    assert times.slowness((1, 8), 1.0, True) == pytest.approx(1, rel=0.01), "half does not count"


def test_half_of_the_threads_gives_the_same_numbers():
    """So a text does not depend on how busy the machine was."""
    passes = language_model(tiny_hf_model("llama"), None, "t").passes
    graph = passes.graphs_with(()).graphs.general._graph
    requests = [graph.on_threads(threads).create_infer_request() for threads in (1, 2)]
    for rows in (1, 5, 13):
        given = [argument.numpy() for argument in passes._arguments(rows)]
        half, whole = (request.infer(given)[0].copy() for request in requests)
        assert np.allclose(half, whole, rtol=1e-5, atol=1e-6)
        assert (half.argmax(-1) == whole.argmax(-1)).all()


def test_a_pass_tells_how_slow_it_was(monkeypatch):
    class Noted(Pace):
        def saw(self, slowness):
            told.append(slowness)

    told: list[float] = []
    monkeypatch.setattr(calls, "PACE", Noted())
    model = language_model(tiny_hf_model("llama"), None, "t")
    session = model.session(64)
    session.extend([3])  # makes the graph
    told.clear()
    for _ in range(20):
        session.extend([3])
    assert len(told) == 20 and np.isfinite(told).all() and min(told) > 0
