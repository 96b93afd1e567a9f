"""These tests need a CUDA GPU; without one nothing here is collected.

python -m pytest tests/gpu tests/kernels/interpreted
"""

import logging

import pytest
import torch

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*.py"]

CAPTURES = (
    "engine.fast.gpu.buffer_sets",
    "engine.fast.gpu.kernel_calls",
    "engine.fast.kernels.lang",
)


@pytest.fixture(autouse=True)
def nothing_falls_back(caplog):
    """Assert that every pass is captured and every kernel launched: the log would name the others."""
    with caplog.at_level(logging.WARNING):
        yield
    assert not [one.message for one in caplog.records if one.name in CAPTURES]
