"""Plans how tree attention divides its work: tiles, parts of the prefix, and the resources of a program."""

from dataclasses import dataclass

from engine.fast.kernels.hardware import HOPPER, Gpu
from engine.fast.kernels.lang import power_of_two

MOST_PARTS = 64


@dataclass(frozen=True)
class Plan:
    """How one launch of tree attention divides its work.

    block_rows, block_columns: the size of a tile. splits: the number of parts of the prefix. warps, stages: the
    resources of a program. chunk: the dimensions of a head that are multiplied at a time; None means all.
    """

    block_rows: int
    block_columns: int
    splits: int
    warps: int
    stages: int
    chunk: int | None = None

    def blocks(self, packed: int) -> int:
        """The number of tiles of query rows; each tile reads the whole prefix. packed: the number of query rows times
        the number of query heads per KV head."""
        return -(-packed // self.block_rows)


def plan(
    rows: int, groups: int, pairs: int, head: int, element: int, longest: int, gpu: Gpu = HOPPER
) -> Plan:
    """Return the plan for a launch, which depends only on shapes and on the GPU.

    rows: query rows per sequence. groups: query heads per KV head. pairs: sequences times KV heads. head: dimensions of
    a head. element: bytes of one number. longest: the longest prefix, in columns.
    """
    packed, width = rows * groups, power_of_two(head, 16)
    largest = 128 if width <= 128 else (64 if gpu.large_products else 32)
    if element == 4:
        largest = 16
    block_rows = min(power_of_two(packed, 16), largest)
    if block_rows == 128 and -(-packed // 64) % 2:
        block_rows = 64  # an odd number of 64s: the last 128 would be half empty
    block_columns, chunk = 64 if width <= 128 else 32, None
    if element == 4:  # all of q at once, in two parts for tf32x3, would not fit the registers
        block_columns, chunk = 32 if width <= 128 else 16, 32
    stage = 2 * block_columns * width * element
    room = gpu.shared - block_rows * width * element - 4096
    stages = max(1, min(3 if element == 2 else 2, room // stage))
    many = 4096
    if gpu.large_products and element == 2:
        many = 16384 if block_rows >= 64 else 8192
    warps = 8 if block_rows >= 128 or block_rows * width >= many else 4
    blocks = -(-packed // block_rows)
    splits = places(warps, gpu) // (pairs * blocks) - 1  # the tree is a part of its own
    splits = max(1, min(splits, MOST_PARTS - 1))
    splits = min(splits, -(-longest // (2 * block_columns)))
    return Plan(block_rows, block_columns, splits, warps, stages, chunk)


def places(warps: int, gpu: Gpu) -> int:
    """The number of programs that the GPU runs at the same time; further programs would wait for a second wave. A
    multiprocessor has registers for one program of eight warps or for two programs of four warps."""
    return gpu.processors * (1 if warps == 8 else 2)
