"""Products of fp32 rows with matrices of bf16 numbers, computed by a CPU's bf16 units without rounding the rows.

Most published weights are bf16 numbers, and so are weights in 8 bits before their factors. An fp32 number has a
mantissa of 24 bits, so it is the sum of three bf16 numbers, which have 8 bits each. A product of two bf16 numbers is
exact in fp32. So the rows are split into three, all three are multiplied by the matrix in one product that sums in
fp32, and the three results are added. No bit of the matrix is lost, nor of the rows, except for what is smaller than
2^-126 and counts as 0; and the matrix takes half of the memory that it would take as fp32.

Which kernel multiplies depends on the processor and on the number of rows, and a kernel might round where another does
not. So every number of rows that a pass may have is tried first, with rows and a matrix whose products no kernel may
round; that takes a second and is done once per machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.fast.cpu.core_count import settings, threads, timed
from engine.fast.cpu.joining import by_a_matrix
from engine.fast.cpu.runtime import core, own_operations
from engine.model.session import PREFILL_ROWS
from engine.remembered import Remembered

log = logging.getLogger(__name__)

LEAST = 100_000
"""Numbers in a matrix; for a smaller one, splitting the rows costs more than it saves."""
EIGHT_BITS = 127  # the largest number in a row of 8-bit weights; its factor is chosen so
SAMPLE = 8  # rows that are looked at first, so that large matrices of other numbers cost little
CLEARLY = 0.95
"""Products in bf16 must take less than this share of the time of fp32 products."""
COUNTS = (*range(1, 65), *range(72, PREFILL_ROWS + 1, 8))
"""Numbers of rows that are tried: those of all passes, because larger numbers are rounded up (``engine.fast.cpu.row_shape``)."""
PROVEN = Remembered("bf16_products.json")


@cache
def bf16_pays() -> bool:
    """Whether this CPU multiplies rows by bf16 matrices faster than by fp32 matrices, and loses no bit. The time is
    measured once per process. Of the rounds the fastest counts, because other work makes rounds slower only."""
    try:
        if "BF16" not in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            return False
        times = timed({split: _trial_pass(split) for split in (False, True)})
        return min(times[True]) < CLEARLY * min(times[False]) and _proven()
    except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
        log.info("Products stay in fp32: %s", error)
        return False


def _proven() -> bool:
    """Whether products with any of COUNTS rows lose no bit; tried once per machine."""
    return once_per_machine(PROVEN, lambda: lossless(multiply_in_thirds, COUNTS))


def once_per_machine(memory: Remembered, holds: Callable[[], bool]) -> bool:
    """Whether ``holds`` is true of this machine's kernels: from memory if it was measured before, else measured now."""
    known, here = memory.read(), machine()
    if not isinstance(known.get(here), bool):
        known[here] = holds()
        memory.write(known)
    return known[here]


def machine() -> str:
    """Everything that the choice of kernels depends on."""
    import openvino

    limits = [os.environ.get(f"{prefix}_MAX_CPU_ISA", "") for prefix in ("ONEDNN", "DNNL")]
    name = core().get_property("CPU", "FULL_DEVICE_NAME")
    return " ".join([name, openvino.__version__, str(threads()), *limits]).strip()


Multiply = Callable[[np.ndarray], np.ndarray]
"""Rows [R, K] -> their products with a matrix [R, N]."""


def lossless(making: Callable[[np.ndarray], Multiply], counts: Sequence[int]) -> bool:
    """Whether products with a matrix [N, K] are exact, bit for bit, for these numbers of rows.

    The numbers of rows and matrix are chosen so that a sum in fp32 has to round nowhere, in whichever order a kernel
    adds: each of the three parts of a row gives whole multiples of a power of two, fewer than 2^24 of them, and the
    large parts cancel. So all that differs from the exact product was lost by the kernel."""
    rows, matrix = _telling_rows(max(counts)), _telling_matrix()
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    multiply = making(matrix)
    return all(np.array_equal(multiply(rows[:count]), exact[:count]) for count in counts)


_HALF = 256  # columns; as many others have the same high parts
_OUTPUTS = 256


def _telling_rows(count: int) -> np.ndarray:
    """[count, 2 * _HALF] whole numbers of 24 bits, with something in each third."""
    numbers = np.random.default_rng(0)
    high = numbers.integers(2**7 + 1, 2**8 - 1, (count, _HALF)) << 16
    # a rest of 15 bits, so that its upper 8 bits are multiples of 2^7
    rest = numbers.integers(2**14, 2**15 - 2**6, (count, 2 * _HALF))
    signs = numbers.choice([-1, 1], (count, 2 * _HALF))
    return (np.concatenate([high, high], 1) + signs * rest).astype(np.float32)


def _telling_matrix() -> np.ndarray:
    """[_OUTPUTS, 2 * _HALF]: the second half takes away the high parts that the first half adds."""
    first = np.random.default_rng(1).integers(-3, 4, (_OUTPUTS, _HALF))
    return np.concatenate([first, -first], 1).astype(np.float32)


def multiply_in_thirds(matrix: np.ndarray) -> Multiply:
    """Products as ``split_products`` makes them, on the threads of this process."""
    return multiplied(matrix, split_products)


def multiplied(matrix: np.ndarray, change: Callable[[object], int]) -> Multiply:
    """Products with this matrix [N, K] after a change of the OpenVINO model, on the threads of this process. Raises ValueError
    unless the change is of this one product."""
    import openvino
    from openvino import opset13 as ops

    given = ops.parameter([-1, matrix.shape[1]], np.float32)
    model = openvino.Model([ops.matmul(given, matrix, False, True)], [given])
    if change(model) != 1:
        raise ValueError("the matrix is too small, or holds other numbers")
    request = core().compile_model(model, "CPU", settings(threads())).create_infer_request()
    return lambda rows: next(iter(request.infer([rows]).values()))


@dataclass(frozen=True)
class Bf16Matrix:
    """bits: the upper 16 bits of the numbers [N, K]. scale: a factor for each row [N]; None if all are 1."""

    bits: np.ndarray
    scale: np.ndarray | None


def split_products(model) -> int:
    """Replace an OpenVINO model's products with large matrices by products of bf16 parts, if the matrix loses no bit
    by it; returns how many products were replaced."""
    thirds: dict[tuple, object] = {}
    count = 0
    for node in model.get_ordered_ops():
        matrix = large_matrix(node, LEAST)
        found = None if matrix is None else bf16_matrix(matrix)
        if found is None:
            continue
        rows = node.input_value(0)
        key = rows.get_node().get_friendly_name(), rows.get_index()
        if key not in thirds:
            thirds[key] = _in_thirds(rows)
        node.output(0).replace(_product(thirds[key], found, len(rows.get_partial_shape())))
        count += 1
    model.validate_nodes_and_infer_types()
    return count


def bf16_matrix(matrix: np.ndarray) -> Bf16Matrix | None:
    """A matrix [N, K] of fp32 numbers as bf16 numbers, with a factor for each row if the numbers come from 8 bits; None
    if they are others."""
    if not np.any(matrix.view(np.uint32) & 0xFFFF):
        return Bf16Matrix(_upper(matrix), None)
    if len(matrix) > SAMPLE and bf16_matrix(matrix[:SAMPLE]) is None:
        return None
    scale = np.abs(matrix).max(1) / np.float32(EIGHT_BITS)
    scale[scale == 0] = 1
    # the largest number was rounded, so the factor may be a neighbour of this quotient
    for factor in (scale, np.nextafter(scale, np.float32(0)), np.nextafter(scale, np.float32(1))):
        numbers = np.rint(matrix / factor[:, None])
        wrong = (numbers * factor[:, None] != matrix).any(1)
        scale = np.where(wrong, scale, factor)
    numbers = np.rint(matrix / scale[:, None])
    if not np.array_equal(numbers * scale[:, None], matrix):
        return None
    return Bf16Matrix(_upper(numbers), scale)


def _upper(numbers: np.ndarray) -> np.ndarray:
    return (numbers.view(np.uint32) >> 16).astype(np.uint16)


def large_matrix(node, least: int) -> np.ndarray | None:
    """The matrix [N, K] of a product with a matrix of at least so many numbers; else None."""
    if not by_a_matrix(node):
        return None
    matrix = node.input_value(1).get_node().data
    if matrix.dtype != np.float32 or matrix.size < least:
        return None
    return matrix if node.get_attributes()["transpose_b"] else np.ascontiguousarray(matrix.T)


def _in_thirds(rows):
    """rows [R, K] or [1, R, K] -> bf16 [3, R, K]; the sum over the first axis is the rows."""
    from openvino import opset13 as ops

    if len(rows.get_partial_shape()) == 2:
        rows = ops.unsqueeze(rows, np.int64([0])).output(0)
    parts, rest = [], rows
    for _ in range(2):
        parts.append(ops.convert(rest, "bf16"))
        rest = ops.subtract(rest, ops.convert(parts[-1], "f32"))
    return ops.concat([*parts, ops.convert(rest, "bf16")], 0)


def _product(thirds, matrix: Bf16Matrix, rank: int):
    """thirds [3, R, K], matrix [N, K] -> output [R, N], or [1, R, N] if the rank is 3."""
    from openvino import Shape, Tensor, Type
    from openvino import opset13 as ops

    weights = Tensor(Type.bf16, Shape(matrix.bits.shape))
    weights.data.view(np.uint16)[...] = matrix.bits
    bias = np.zeros(len(matrix.bits), np.float32)
    given = [thirds, ops.constant(weights), ops.constant(bias)]
    outputs = [each.output(0) for each in given]
    found = own_operations().create("FullyConnected", outputs, {"output_type": "f32"})
    high, middle, low = ops.split(found, np.int64(0), 3).outputs()
    total = ops.add(ops.add(low, middle), high)
    if matrix.scale is not None:
        total = ops.multiply(total, ops.constant(matrix.scale))
    return total.output(0) if rank == 3 else ops.squeeze(total, np.int64([0])).output(0)


def _trial_pass(split: bool):
    """Five rows through a few matrix products, as fp32 or in thirds."""
    import openvino
    from openvino import opset13 as ops

    given = ops.parameter([1, 5, 1024], np.float32)
    rows = given
    for seed in range(4):
        matrix = np.full((1024, 1024), 2.0 ** -(10 + seed), np.float32)
        rows = ops.matmul(rows, matrix, False, True)
    model = openvino.Model([rows], [given])
    if split:
        split_products(model)
    request = core().compile_model(model, "CPU", settings(threads())).create_infer_request()
    example = np.zeros((1, 5, 1024), np.float32)
    return lambda: request.infer([example])
