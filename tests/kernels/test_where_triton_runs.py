"""Whether kernels can be launched at all is asked once, by launching one."""

import logging

import pytest
import torch

pytest.importorskip("triton")

from engine.kernels.lang import on_gpu, runs_on

NO_GPU = torch.device("cpu")  # no compiled kernel runs on its tensors, whatever else is there


def test_a_launch_that_fails_is_said_once_and_ends_nothing(caplog):
    runs_on.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not runs_on(NO_GPU)
        assert not runs_on(NO_GPU)
    assert [record.message.split(". ")[0] for record in caplog.records] == [
        "Nothing runs in Triton kernels on cpu"
    ]
    assert not on_gpu(torch.zeros(1))
