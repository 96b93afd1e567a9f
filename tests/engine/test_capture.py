"""When graphs are captured, on which streams, and when they may end (``tests.engine.fake_cuda``)."""

import gc
import logging
import threading

import pytest
import torch

from engine.core.sampling import Sampling
from engine.fast.gpu import capture, verdict
from engine.fast.gpu.buffer_sets import MOST_FAILED
from engine.methods.chain.drafter import ChainDrafter
from tests.engine.fake_cuda import FakeCuda
from tests.engine.tape import one_operation
from tests.engine.test_static import CHAIN, PROMPT, model_of, steps_of, texts
from tests.engine.tiny import VOCABULARY


@pytest.fixture
def cuda(monkeypatch) -> FakeCuda:
    monkeypatch.setattr(verdict, "verify_tree", one_operation(verdict.verify_tree))
    monkeypatch.setattr(capture.CaptureStream, "_taken", set())
    return FakeCuda(monkeypatch)


def captured_model(seed: int = 0):
    """Return a model on static buffers whose passes are captured as they would be on CUDA."""
    model = model_of("llama", True, seed)
    model.buffer_sets.captures = True
    return model


def run(target, draft, sampling=None, prompt=PROMPT, count=10, recorded=False):
    sampling = sampling or Sampling()
    rule = "greedy" if sampling.greedy else "rejection"
    drafter = ChainDrafter(CHAIN, draft, VOCABULARY)
    return texts(steps_of(target, drafter, rule, sampling, recorded, count, prompt))


def temperatures(count: int) -> list[Sampling]:
    return [Sampling(0.5 + 0.1 * number, seed=number) for number in range(count)]


def test_no_graph_ends_while_another_of_its_stream_is_used(cuda, monkeypatch):
    """Graphs are dropped when buffers move, when settings change and when sets are released."""
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MARGIN", 0)
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.SMALLEST", 1)
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MOST_FREE", 1)
    monkeypatch.setattr(capture, "MOST_RETIRED", 6)
    plain = model_of("llama", False), model_of("llama", False, 5)
    target, draft = captured_model(), captured_model(5)
    for sampling, length in zip(temperatures(5), [5, 60, 5, 70, 9], strict=True):
        for chosen in (sampling, None):
            prompt = (PROMPT * 6)[:length]
            assert run(target, draft, chosen, prompt) == run(*plain, chosen, prompt)
    gc.collect()
    assert sum(cuda.ended.values()) > 6, "nothing was retired"
    assert cuda.dangling == 0
    retired = (model.buffer_sets.recorder._retired for model in (target, draft))
    assert all(count <= 6 + 8 for count in retired)


def test_the_fake_sees_a_graph_that_ends_alone(cuda, monkeypatch):
    """The planted fault: the graphs of dropped passes end at once."""
    monkeypatch.setattr(
        capture.Recorder, "retire", lambda one, gone: [one._recordings.remove(r) for r in gone]
    )
    target, draft = captured_model(), captured_model(5)
    for sampling in temperatures(3):
        run(target, draft, sampling)
        run(target, draft)
    assert cuda.dangling > 0


def test_one_stream_a_model(cuda):
    target, draft = captured_model(), captured_model(5)
    for sampling in temperatures(3):
        run(target, draft, sampling)
    assert len(cuda.streams) == 2 == len(set(cuda.captured_on))
    assert len(cuda.captured_on) > 6


def test_a_stream_is_used_again_only_after_its_graphs(cuda):
    streams = [capture.CaptureStream(torch.device("cpu")) for _ in range(capture.STREAMS)]
    assert len({one.stream.cuda_stream for one in streams}) == capture.STREAMS
    with pytest.raises(RuntimeError, match="in use"):
        capture.CaptureStream(torch.device("cpu"))
    recording = capture.Recording(streams[3])
    handle = streams[3].stream.cuda_stream
    streams.clear()
    gc.collect()
    assert capture.CaptureStream._taken & {handle} == {handle}
    del recording
    gc.collect()
    assert handle not in capture.CaptureStream._taken


def test_a_capture_that_fails_once_is_tried_again(cuda, caplog):
    failures = iter([True])

    def fails():
        if next(failures, False):
            raise RuntimeError("another thread waited for the device")

    plain = model_of("llama", False)
    target = captured_model()
    cuda.fails = fails
    with caplog.at_level(logging.WARNING):
        found = [run(target, target) for _ in range(3)]
    assert found == [run(plain, plain)] * 3
    assert len(caplog.records) == 1 and "another thread" in caplog.records[0].message
    passes = [one for one in _passes(target) if one.recording is not None]
    assert passes and not [one for one in _passes(target) if one.given_up]
    assert [one.attempts for one in passes].count(1) == 1
    assert target.buffer_sets.usable


def test_a_pass_that_cannot_be_captured_leaves_the_others_alone(cuda, caplog, monkeypatch):
    """In this test, passes with a verdict wait for the host; chains and plain passes do not."""

    def waits(*arguments):
        arguments[1].sum().item()
        return reference(*arguments)

    reference = verdict.verify_tree
    monkeypatch.setattr(verdict, "verify_tree", waits)
    plain, target = model_of("llama", False), captured_model()
    with caplog.at_level(logging.WARNING):
        assert run(target, target) == run(plain, plain)
    assert ["waits for a number" in record.message for record in caplog.records] == [True]
    given_up = {one.function.func.__name__ for one in _passes(target) if one.given_up}
    recorded = {one.function.func.__name__ for one in _passes(target) if one.recording}
    assert given_up == {"judged"}
    assert recorded == {"chain", "step"}


def test_where_nothing_can_be_captured_nothing_more_is_tried(cuda):
    tries = []

    def fails():
        tries.append(1)
        raise RuntimeError("no graphs here")

    cuda.fails = fails
    plain, target = model_of("llama", False), captured_model()
    for sampling in temperatures(4):
        assert run(target, target, sampling) == run(plain, plain, sampling)
    assert not target.buffer_sets.usable
    assert len(tries) == MOST_FAILED


def test_threads_capture_one_after_the_other(cuda):
    models = [captured_model(seed) for seed in range(3)]
    found = {}

    def written(seed):
        found[seed] = run(models[seed], models[seed])

    threads = [threading.Thread(target=written, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cuda.most_at_once == 1
    for seed in range(3):
        plain = model_of("llama", False, seed)
        assert found[seed] == run(plain, plain)


def _passes(model) -> list:
    with model.buffer_sets._guard:
        model.buffer_sets._collect()
    return [one for kept in model.buffer_sets._free for one in kept._passes.values()]
