"""The few facts of a GPU by which work is cut."""

from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True)
class Gpu:
    """processors: multiprocessors. shared: bytes of shared memory a program may take. major: of
    the compute capability (8 Ampere and Ada, 9 Hopper)."""

    processors: int
    shared: int
    major: int

    @classmethod
    def of(cls, device: torch.device) -> "Gpu":
        return _of(device.index if device.index is not None else torch.cuda.current_device())


@lru_cache
def _of(index: int) -> Gpu:
    found = torch.cuda.get_device_properties(index)
    return Gpu(found.multi_processor_count, found.shared_memory_per_block_optin, found.major)


AMPERE = Gpu(108, 166_912, 8)  # A100
HOPPER = Gpu(132, 232_448, 9)  # H100, H200
KNOWN = {80: AMPERE, 90: HOPPER}
