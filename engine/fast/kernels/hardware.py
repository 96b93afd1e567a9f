"""The few properties of a GPU that decide how kernels divide their work."""

from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True)
class Gpu:
    """A GPU. processors: its number of multiprocessors. shared: bytes of shared memory that a program may use. major:
    the first number of its compute capability (8 Ampere and Ada, 9 Hopper, 10 and 12 Blackwell)."""

    processors: int
    shared: int
    major: int

    @property
    def large_products(self) -> bool:
        """Whether four warps multiply matrices together, with operands in shared memory, as on the large Hopper and
        Blackwell chips. Other chips, including consumer Blackwell, hold the operands in registers."""
        return self.major in (9, 10)

    @classmethod
    def of(cls, device: torch.device) -> "Gpu":
        return _of(device.index if device.index is not None else torch.cuda.current_device())


@lru_cache
def _of(index: int) -> Gpu:
    properties = torch.cuda.get_device_properties(index)
    return Gpu(
        properties.multi_processor_count, properties.shared_memory_per_block_optin, properties.major
    )


OLDEST = 8
"""The lowest major compute capability for which launches are planned, and for which tests compile the kernels."""

AMPERE = Gpu(108, 166_912, 8)  # A100
HOPPER = Gpu(132, 232_448, 9)  # H100, H200
KNOWN = {
    80: AMPERE,
    86: Gpu(80, 101_376, 8),  # A10G
    89: Gpu(58, 101_376, 8),  # L4
    90: HOPPER,
    120: Gpu(170, 101_376, 12),  # RTX 5090
}
