"""Products of fp32 rows with matrices of bf16 numbers, computed by a CPU's bf16 units without rounding the rows.

Most published weights are bf16 numbers. Weights in 8 bits are bf16 numbers too, as long as they have not been
multiplied by their factors. An fp32 number has a mantissa of 24 bits, so it is the sum of three bf16 numbers, whose
mantissas have 8 bits each. A product of two bf16 numbers is exact in fp32. So each row is split into three bf16 parts,
all parts are multiplied by the matrix in one product that sums in fp32, and the three results are added. No bit of the
matrix or of the rows is lost, except that parts smaller than 2^-126 become 0. The matrix takes half of the memory that
it would take as fp32.

Which kernel OpenVINO uses depends on the processor and on the number of rows, and some kernels might round the
products. So a test first multiplies every number of rows that a pass may have. Its rows and its matrix have exact
products that fit into fp32, so any other result shows that a kernel has rounded. The test takes a second and runs once
per machine.

Letters in shapes: R rows, K inputs and N outputs of a product.
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
"""The least number of elements of a matrix whose products are split. For smaller matrices, splitting the rows costs
more time than it saves."""
EIGHT_BITS = 127  # the largest number in a row of 8-bit weights; its factor is chosen so
SAMPLE = 8  # rows that are tested first, so that most unsuitable matrices are rejected quickly
CLEARLY = 0.95
"""Products in bf16 must take less than this share of the time of fp32 products."""
COUNTS = (*range(1, 65), *range(72, PREFILL_ROWS + 1, 8))
"""The numbers of rows for which a test must show that no bit is lost. Passes have no other numbers of rows, because
``engine.fast.cpu.row_shape`` rounds larger ones up."""
PROVEN = Remembered("bf16_products.json")


@cache
def bf16_pays() -> bool:
    """Whether this CPU multiplies rows by bf16 matrices faster than by fp32 matrices, and loses no bit. Both times are
    measured once per process, each as the shortest of several rounds, because other work can only make a round
    slower."""
    try:
        if "BF16" not in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            return False
        times = timed({split: _trial_pass(split) for split in (False, True)})
        return min(times[True]) < CLEARLY * min(times[False]) and _proven()
    except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
        log.info("Products stay in fp32: %s", error)
        return False


def _proven() -> bool:
    """Whether bf16 products lose no bit for any number of rows in COUNTS; tested once per machine."""
    return once_per_machine(PROVEN, lambda: lossless(multiply_in_thirds, COUNTS))


def once_per_machine(memory: Remembered, holds: Callable[[], bool]) -> bool:
    """The result of ``holds()`` for this machine's kernels: read from ``memory`` if an earlier process stored it there,
    else computed now and stored."""
    results, here = memory.read(), machine()
    if not isinstance(results.get(here), bool):
        results[here] = holds()
        memory.write(results)
    return results[here]


def machine() -> str:
    """A text that names everything that OpenVINO's choice of kernels depends on: the processor, OpenVINO's version, the
    number of threads, and environment variables that limit the instruction set."""
    import openvino

    limits = [os.environ.get(f"{prefix}_MAX_CPU_ISA", "") for prefix in ("ONEDNN", "DNNL")]
    name = core().get_property("CPU", "FULL_DEVICE_NAME")
    return " ".join([name, openvino.__version__, str(threads()), *limits]).strip()


Multiply = Callable[[np.ndarray], np.ndarray]
"""A function from rows [R, K] to the products [R, N] of these rows with one matrix."""


def lossless(making: Callable[[np.ndarray], Multiply], counts: Sequence[int]) -> bool:
    """Whether products of rows with a matrix [N, K] are exact, bit for bit, for each of these counts of rows.

    The elements of the test's rows and matrix are chosen so that a sum in fp32 has to round nowhere, in whichever order
    a kernel adds: each of the three parts of a row contributes whole multiples of a power of two, fewer than 2^24 of
    them, and the large parts cancel. So any difference from the exact product is a bit that the kernel lost.
    making(matrix): returns the function that multiplies rows by the matrix.
    """
    rows, matrix = _telling_rows(max(counts)), _telling_matrix()
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    multiply = making(matrix)
    return all(np.array_equal(multiply(rows[:count]), exact[:count]) for count in counts)


_HALF = 256  # columns; as many others have the same high parts
_OUTPUTS = 256


def _telling_rows(count: int) -> np.ndarray:
    """Rows [count, 2 * _HALF] of 24-bit integers, which need all three bf16 parts."""
    numbers = np.random.default_rng(0)
    high = numbers.integers(2**7 + 1, 2**8 - 1, (count, _HALF)) << 16
    # a rest of 15 bits, so that its upper 8 bits are multiples of 2^7
    rest = numbers.integers(2**14, 2**15 - 2**6, (count, 2 * _HALF))
    signs = numbers.choice([-1, 1], (count, 2 * _HALF))
    return (np.concatenate([high, high], 1) + signs * rest).astype(np.float32)


def _telling_matrix() -> np.ndarray:
    """A matrix [_OUTPUTS, 2 * _HALF] whose second half is minus its first half. So the high parts of ``_telling_rows``,
    which are the same in both halves of a row, cancel in every product."""
    first = np.random.default_rng(1).integers(-3, 4, (_OUTPUTS, _HALF))
    return np.concatenate([first, -first], 1).astype(np.float32)


def multiply_in_thirds(matrix: np.ndarray) -> Multiply:
    """The function that multiplies rows by this matrix [N, K] as ``split_products`` does, on the threads of this
    process. Raises ValueError if ``split_products`` leaves the product as it is."""
    return multiplied(matrix, split_products)


def multiplied(matrix: np.ndarray, change: Callable[[object], int]) -> Multiply:
    """Return the function that multiplies rows by this matrix [N, K] on the threads of this process. The function runs
    an OpenVINO model of this one product, which ``change`` has rewritten. change: rewrites a model and returns the
    number of products or matrices that it replaced. Raises ValueError unless this number is 1."""
    import openvino
    from openvino import opset13 as ops

    rows_input = ops.parameter([-1, matrix.shape[1]], np.float32)
    model = openvino.Model([ops.matmul(rows_input, matrix, False, True)], [rows_input])
    if change(model) != 1:
        raise ValueError("the matrix is too small, or holds other numbers")
    request = core().compile_model(model, "CPU", settings(threads())).create_infer_request()
    return lambda rows: next(iter(request.infer([rows]).values()))


@dataclass(frozen=True)
class Bf16Matrix:
    """A matrix of bf16 numbers, with a factor for each row. bits: the upper 16 bits of the numbers, [N, K]. scale: the
    factors [N]; None if all are 1."""

    bits: np.ndarray
    scale: np.ndarray | None


def split_products(model) -> int:
    """Replace an OpenVINO model's products with large matrices by products of bf16 parts; return how many were
    replaced. A product stays in fp32 if its matrix cannot be written as bf16 numbers without losing a bit."""
    thirds: dict[tuple, object] = {}
    count = 0
    for node in model.get_ordered_ops():
        matrix = large_matrix(node, LEAST)
        parts = None if matrix is None else bf16_matrix(matrix)
        if parts is None:
            continue
        rows = node.input_value(0)
        key = rows.get_node().get_friendly_name(), rows.get_index()
        if key not in thirds:
            thirds[key] = _in_thirds(rows)
        node.output(0).replace(_product(thirds[key], parts, len(rows.get_partial_shape())))
        count += 1
    model.validate_nodes_and_infer_types()
    return count


def bf16_matrix(matrix: np.ndarray) -> Bf16Matrix | None:
    """An fp32 matrix [N, K] as bf16 numbers, without loss of a bit; None if that is impossible. A matrix that was
    unpacked from 8-bit weights becomes whole numbers with a factor for each row."""
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
    """The fp32 matrix [N, K] that this node of an OpenVINO model multiplies rows by. None if the node is no such
    product, or if the matrix holds fewer than ``least`` numbers."""
    if not by_a_matrix(node):
        return None
    matrix = node.input_value(1).get_node().data
    if matrix.dtype != np.float32 or matrix.size < least:
        return None
    return matrix if node.get_attributes()["transpose_b"] else np.ascontiguousarray(matrix.T)


def _in_thirds(rows):
    """Split fp32 rows [R, K] or [1, R, K] into three bf16 parts [3, R, K] whose sum over the first axis is the rows."""
    from openvino import opset13 as ops

    if len(rows.get_partial_shape()) == 2:
        rows = ops.unsqueeze(rows, np.int64([0])).output(0)
    parts, rest = [], rows
    for _ in range(2):
        parts.append(ops.convert(rest, "bf16"))
        rest = ops.subtract(rest, ops.convert(parts[-1], "f32"))
    return ops.concat([*parts, ops.convert(rest, "bf16")], 0)


def _product(thirds, matrix: Bf16Matrix, rank: int):
    """The products of rows in three parts [3, R, K] with a matrix [N, K]: [R, N], or [1, R, N] if ``rank`` is 3."""
    from openvino import Shape, Tensor, Type
    from openvino import opset13 as ops

    weights = Tensor(Type.bf16, Shape(matrix.bits.shape))
    weights.data.view(np.uint16)[...] = matrix.bits
    bias = np.zeros(len(matrix.bits), np.float32)
    inputs = [thirds, ops.constant(weights), ops.constant(bias)]
    outputs = [node.output(0) for node in inputs]
    products = own_operations().create("FullyConnected", outputs, {"output_type": "f32"})
    high, middle, low = ops.split(products, np.int64(0), 3).outputs()
    total = ops.add(ops.add(low, middle), high)
    if matrix.scale is not None:
        total = ops.multiply(total, ops.constant(matrix.scale))
    return total.output(0) if rank == 3 else ops.squeeze(total, np.int64([0])).output(0)


def _trial_pass(split: bool):
    """Return a function that runs five rows through four matrix products, for timing. split: whether the products are
    computed in bf16 parts instead of fp32."""
    import openvino
    from openvino import opset13 as ops

    rows_input = ops.parameter([1, 5, 1024], np.float32)
    rows = rows_input
    for seed in range(4):
        matrix = np.full((1024, 1024), 2.0 ** -(10 + seed), np.float32)
        rows = ops.matmul(rows, matrix, False, True)
    model = openvino.Model([rows], [rows_input])
    if split:
        split_products(model)
    request = core().compile_model(model, "CPU", settings(threads())).create_infer_request()
    example = np.zeros((1, 5, 1024), np.float32)
    return lambda: request.infer([example])
