"""How many threads OpenVINO and torch compute with."""

import threading
import time

import pytest
import torch

from engine.core.threads import InOrder, halved, is_halved, torch_threads
from engine.fast.cpu import core_count as cpu_threads
from engine.fast.cpu.calls import Calls
from engine.fast.cpu.core_count import fewest_that_pays, settings
from engine.fast.cpu.runtime import core
from engine.fast.cpu.store import compiled
from engine.model.session import Session
from engine.run import RunRequest, open_run
from presets import family


@pytest.mark.parametrize(
    ("milliseconds", "count"),
    [
        ({1: 5.4, 2: 3.8}, 2),  # a quiet machine
        ({1: 30.0, 2: 72.0}, 1),  # a busy one
        ({1: 3.7, 2: 3.8}, 2),  # no clear difference
        ({1: 9.0, 4: 3.0, 8: 4.0}, 4),
    ],
)
def test_all_threads_unless_fewer_are_clearly_faster(milliseconds, count):
    assert fewest_that_pays(milliseconds) == count


def test_the_engine_s_lock_goes_to_whoever_asked_first():
    """Also where the thread that gives it up wants it again at once."""
    lock, order = InOrder(), []

    def once() -> None:
        with lock:
            order.append("other")

    other = threading.Thread(target=once)
    for turn in range(20):
        with lock:
            order.append("busy")
            if turn == 0:
                other.start()
                while len(lock._line) < 2:
                    time.sleep(0.001)
    other.join(60)
    assert order[:3] == ["busy", "other", "busy"] and not lock._line


def test_the_engine_s_lock_is_free_after_an_error_and_after_a_wait_that_is_broken_off(monkeypatch):
    lock = InOrder()
    with pytest.raises(ValueError), lock:
        raise ValueError

    def broken(self, timeout=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading.Event, "wait", broken)
        with lock:
            pass
    with lock:
        assert len(lock._line) == 1


def test_the_choice_is_measured_once(monkeypatch):
    measured = []

    def timed(passes):
        measured.append(sorted(passes))
        for run in passes.values():
            run()
        return {count: [float(count)] for count in passes}

    monkeypatch.setattr(cpu_threads, "timed", timed)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    cpu_threads.threads.cache_clear()
    try:
        assert [cpu_threads.threads(), cpu_threads.threads()] == [1, 1] and measured == [[1, 2]]
    finally:
        cpu_threads.threads.cache_clear()


def test_a_model_from_the_cache_folder_obeys():
    """Threads are not tied to cores, and their number is not that of the machine that compiled the model."""
    made = cpu_threads._trial_model(2)
    found = core().import_model(made.export_model().getvalue(), "CPU", settings(1))
    assert found.get_property("INFERENCE_NUM_THREADS") == 1
    assert found.get_property("ENABLE_CPU_PINNING") is False
    assert made.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"


def test_torch_is_alone_in_a_step_of_compiled_models(monkeypatch):
    """torch gets one thread during a step, and all threads after it and for passes of the module."""
    inside = []
    look = Session.look
    monkeypatch.setattr(
        Session, "look", lambda *given: inside.append(torch.get_num_threads()) or look(*given)
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = open_run(RunRequest("Once upon", family(), "none", max_new_tokens=2))
        assert list(run.steps()) and inside == [1, 1]
        assert torch.get_num_threads() == 2
        with torch_threads(None):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def copied(found) -> torch.Tensor:
    return torch.from_numpy(found.copy())


def test_two_pieces_of_work_at_once_compute_with_half_of_the_threads_each():
    weight = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    product = torch.nn.Linear(32, 64, bias=False)
    product.weight.data = weight
    graphs = [compiled(product, [torch.zeros(3, 32)], "product") for _ in range(2)]
    assert [graph.on_threads(1).get_property("INFERENCE_NUM_THREADS") for graph in graphs] == [1, 1]
    calls, rows = Calls(graphs[1]), torch.randn(5, 32)  # the second comes from the cache folder
    whole = calls([rows.numpy()], [0], copied)
    with halved():
        half = calls([rows.numpy()], [0], copied)
    after = calls([rows.numpy()], [0], copied)
    assert torch.allclose(whole, rows @ weight.T, atol=1e-5) and torch.equal(whole, after)
    assert torch.allclose(half, whole, atol=1e-5)


def test_pearl_s_two_lanes_halve_and_the_next_run_does_not(monkeypatch):
    inside = []
    look = Session.look
    monkeypatch.setattr(Session, "look", lambda *given: inside.append(is_halved()) or look(*given))
    for drafter, expected in (("pearl", True), ("chain", False)):
        inside.clear()
        run = open_run(RunRequest("Once upon", family(), drafter, max_new_tokens=4))
        assert list(run.steps()) and set(inside) == {expected}
        assert not is_halved()
