"""The noise of a device is the noise of the CPU, number for number."""

import pytest
import torch

from engine.fast.kernels.position_noise import noise_rows, noise_rows_reference
from tests.kernels.device import noise_rows_triton

CPU = torch.device("cpu")


@pytest.mark.parametrize("vocabulary", [1, 6, 61, 130])
@pytest.mark.parametrize(("seed", "first"), [(0, 0), (3, 77), (2**63 - 1, 2**31 - 3)])
def test_noise(seed, first, vocabulary):
    found = noise_rows_triton(seed, first, 3, vocabulary, block=16)
    assert torch.equal(found, noise_rows_reference(seed, first, 3, vocabulary))
    if vocabulary > 1:  # a planted fault
        other = noise_rows_triton(seed, first + 1, 3, vocabulary, block=16)
        assert torch.equal(other[:2], found[1:]) and not torch.equal(other, found)


def test_no_rows():
    assert noise_rows_triton(1, 5, 0, 9).shape == noise_rows(1, 5, 0, 9, CPU).shape == (0, 9)
