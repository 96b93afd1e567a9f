"""Whether kernels can be launched is found out by launching one; a failure ends no run."""

import logging

import pytest
import torch

pytest.importorskip("triton")

from triton.runtime.errors import OutOfResources

from engine.fast.gpu import kernel_calls
from engine.fast.kernels import tree_attention
from engine.fast.kernels.lang import on_gpu, runs_on
from tests.engine.test_static import drafters, pair, steps_of, texts

NO_GPU = torch.device("cpu")  # no compiled kernel runs on CPU tensors, with or without a GPU


def test_a_launch_that_fails_is_said_once_and_ends_nothing(caplog):
    runs_on.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not runs_on(NO_GPU)
        assert not runs_on(NO_GPU)
    assert [record.message.split(". ")[0] for record in caplog.records] == [
        "Nothing runs in Triton kernels on cpu"
    ]
    assert not on_gpu(torch.zeros(1))


def test_gpus_before_ampere_are_refused(monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    runs_on.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not runs_on(torch.device("cuda", 0))
    runs_on.cache_clear()
    assert "compute capability 8.0" in caplog.text


def test_attention_that_cannot_be_launched_ends_no_run(monkeypatch, caplog):
    """Only sizes that need more shared memory than there is fall back to another implementation."""
    tried = []

    def attention(query, *arguments):
        tried.append(query.shape)
        if query.shape[2] > 3:
            raise OutOfResources(98304, 65536, "shared memory")
        return tree_attention.tree_attention_reference(query, *arguments)

    plain, model = pair("mistral")
    expected = [texts(steps_of(plain, drafter)) for drafter in drafters(plain)]
    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    monkeypatch.setattr(kernel_calls, "_launched", {})
    monkeypatch.setattr(tree_attention, "tree_attention", attention)
    kernel_calls._say_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert [texts(steps_of(model, drafter)) for drafter in drafters(model)] == expected
    large = [shape for shape in tried if shape[2] > 3]
    assert len(large) == len(set(large)) > 0
    assert len(tried) - len(large) > 10
    assert all("OutOfResources" in record.message for record in caplog.records)
    assert len(caplog.records) == len(large)


def test_a_failure_after_a_launch_that_succeeded_is_an_error(monkeypatch):
    session = pair("llama")[1].session(30)
    monkeypatch.setattr(kernel_calls, "takes", lambda tensor: True)
    monkeypatch.setattr(kernel_calls, "_launched", {})
    session.extend([1, 2])

    def fails(*arguments):
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(tree_attention, "tree_attention", fails)
    with pytest.raises(RuntimeError, match="illegal"):
        session.extend([3, 4])
