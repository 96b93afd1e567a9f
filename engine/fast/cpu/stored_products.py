"""Lets passes read matrices of 4-bit and 8-bit weights as they were stored, although they have been unpacked to fp32.

A model of 4 bits per weight that was unpacked to fp32 takes eight times the memory, and a pass over one row takes as
long as the memory needs to deliver the weights. So the stored bits are recovered from the unpacked numbers, in one of
three formats:

- for each group of 32 numbers in a row, a factor, a smallest number, and whole numbers of 4 bits (GGUF's Q4_1);
- for each group of 32 numbers in a row, a factor and whole numbers of 8 bits (Q8_0);
- for each whole row, a factor and whole numbers of 8 bits, as the draft models of this project are stored.

If a format gives all numbers of a matrix to the last bit, OpenVINO gets the whole numbers. It unpacks them during the
product, and still multiplies and adds in fp32. The results differ from those of the unpacked matrix only because sums
are added in another order.

Letters in shapes: K inputs and N outputs of a product.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from engine.errors import UserError
from engine.fast.cpu.bf16_products import (
    COUNTS,
    LEAST,
    SAMPLE,
    Multiply,
    large_matrix,
    multiplied,
    once_per_machine,
)
from engine.fast.cpu.core_count import settings, threads, timed
from engine.fast.cpu.joining import join, products_by_rows
from engine.fast.cpu.runtime import core
from engine.remembered import Remembered

log = logging.getLogger(__name__)

SETTING = "DRAFTSCOPE_WEIGHTS"
WAYS = ("stored", "unpacked")
GROUP = 32  # numbers of a row with a common factor
LEVELS = ((0, 15), (-127, 127))  # whole numbers of 4 and of 8 bits
CLEARLY = 0.9
"""Passes over stored weights must take less than this share of the time of passes over unpacked ones."""
PROVEN = Remembered("stored_products.json")


@cache
def reads_stored() -> bool:
    """Whether passes read weights as they are stored. The environment variable in SETTING decides; without it, a
    measurement once per process decides which is faster here. The result is False if a kernel rounds more than sums in
    fp32 do. Raises UserError if the variable has an invalid value."""
    setting = os.environ.get(SETTING, "")
    if setting and setting not in WAYS:
        raise UserError(f"{SETTING} must be {' or '.join(WAYS)}, not {setting!r}.")
    if setting == "unpacked":
        return False
    try:
        return (setting == "stored" or _pays()) and _proven()
    except Exception as error:  # noqa: BLE001 - OpenVINO has no common kind
        log.info("Weights are unpacked: %s", error)
        return False


def _pays() -> bool:
    times = timed({stored: _trial_pass(stored) for stored in (False, True)})
    return min(times[True]) < CLEARLY * min(times[False])


def _proven() -> bool:
    """Whether products over stored weights are as exact as sums in fp32 for every number of rows in COUNTS; tested once
    per machine."""
    return once_per_machine(
        PROVEN, lambda: all(as_exact(multiply_stored, matrix) for matrix in _matrices())
    )


def _matrices() -> list[np.ndarray]:
    """Two fp32 matrices [256, 512]: one unpacked from weights of 4 bits, the other from weights of 8 bits."""
    numbers = np.random.default_rng(0)
    factor = _halves(numbers.uniform(0.001, 0.1, (256, 16, 1)).astype(np.float32))
    least = _halves(-factor * numbers.uniform(4, 10, factor.shape).astype(np.float32))
    four, eight = (numbers.integers(low, 1 + high, (256, 16, GROUP)) for low, high in LEVELS)
    four[..., :2], eight[..., 0] = (0, 15), 127
    unpacked = four * factor + least, eight * factor
    return [matrix.astype(np.float32).reshape(256, -1) for matrix in unpacked]


def as_exact(making: Callable[[np.ndarray], Multiply], matrix: np.ndarray) -> bool:
    """Whether products of rows with a matrix [N, K] have no larger error than a sum of K products in fp32 can have, in
    any order, for every number of rows in COUNTS. making(matrix): returns the function that multiplies rows."""
    rows = np.random.default_rng(1).standard_normal((max(COUNTS), matrix.shape[1]), np.float32)
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    allowed = np.abs(rows).astype(np.float64) @ np.abs(matrix.T) * 2.0**-24 * (2 + len(matrix.T))
    multiply = making(matrix)
    return all(
        (np.abs(multiply(rows[:count]) - exact[:count]) <= allowed[:count]).all()
        for count in COUNTS
    )


def multiply_stored(matrix: np.ndarray) -> Multiply:
    """The function that multiplies rows by this matrix as ``store_products`` does, on the threads of this process.
    Raises ValueError if the matrix is too small or was not unpacked from 4 or 8 bits."""
    return multiplied(matrix, store_products)


@dataclass(frozen=True)
class Grid:
    """A matrix [N, K] as whole numbers of ``bits`` bits, in groups of GROUP numbers: each element is (level - zero) *
    factor. levels: the whole numbers [N, K / GROUP, GROUP]. factor: the factor of each group, [N, K / GROUP, 1]. zero:
    the level that stands for 0 in each group, of the same shape as ``factor``."""

    bits: int
    levels: np.ndarray
    factor: np.ndarray
    zero: np.ndarray


def grid_of(matrix: np.ndarray) -> Grid | None:
    """The grid from which an fp32 matrix [N, K] was unpacked; None if no grid gives its numbers to the last bit."""
    if matrix.shape[1] % GROUP:
        return None
    groups = matrix.reshape(len(matrix), -1, GROUP)
    ways = (_of_four, _of_eight, _of_eight_a_row)
    grids = (way(groups) for way in ways if way(groups[:SAMPLE]))
    return next(grids, None)


def _of_four(groups: np.ndarray) -> Grid | None:
    least, most = groups.min(-1, keepdims=True), groups.max(-1, keepdims=True)
    factor = _halves((most - least) / np.float32(15))
    levels = np.rint((groups - least) / factor)
    if levels.max() > 15 or not np.array_equal(levels * factor + least, groups):
        return None
    return Grid(4, levels.astype(np.uint8), factor, -least / factor)


def _of_eight(groups: np.ndarray) -> Grid | None:
    factor = _halves(np.abs(groups).max(-1, keepdims=True) / np.float32(127))
    levels = np.rint(groups / factor)
    if np.abs(levels).max() > 127 or not np.array_equal(levels * factor, groups):
        return None
    return Grid(8, (levels + 128).astype(np.uint8), factor, np.full_like(factor, 128))


def _of_eight_a_row(groups: np.ndarray) -> Grid | None:
    most = np.abs(groups).max((1, 2), keepdims=True)
    factor = np.where(most == 0, np.float32(1), most / np.float32(127))
    for near in (np.nextafter(factor, np.float32(0)), np.nextafter(factor, np.float32(1))):
        holds = (np.rint(groups / near) * near == groups).all((1, 2), keepdims=True)
        factor = np.where(holds, near, factor)  # the greatest number was rounded after unpacking
    levels = np.rint(groups / factor)
    if not np.array_equal(levels * factor, groups):
        return None
    factor = np.repeat(factor, groups.shape[1], 1)
    return Grid(8, (levels + 128).astype(np.uint8), factor, np.full_like(factor, 128))


def _halves(factor: np.ndarray) -> np.ndarray:
    """The factors rounded to fp16, the type in which they are stored. A factor of 0, which a group of equal numbers
    has, becomes 1."""
    factor = factor.astype(np.float16).astype(np.float32)
    return np.where(factor == 0, np.float32(1), factor)


def store_products(model) -> int:
    """Let an OpenVINO model read its large matrices as they were stored; returns the number of these matrices. Products
    of the same rows with several matrices are joined into one product. Such a group of products is left as it is unless
    all of its matrices were unpacked from the same number of bits."""
    count = 0
    for group in products_by_rows(model):
        grids = [_grid_of_product(node) for node in group]
        if None in grids or len({grid.bits for grid in grids}) > 1:
            continue
        join(group, _weights(grids), [len(grid.levels) for grid in grids])
        count += len(group)
    model.validate_nodes_and_infer_types()
    return count


def looks_stored(weights: Iterable[Tensor]) -> bool:
    """Whether a model with these weights will read them as they are stored. The first rows of the first large matrix
    decide."""
    matrices = (weight for weight in weights if weight.ndim == 2 and weight.numel() >= LEAST)
    first = next(matrices, None)
    if first is None or first.dtype != torch.float32 or not reads_stored():
        return False
    return grid_of(first[:SAMPLE].numpy()) is not None


def has_stored(model) -> bool:
    """Whether an OpenVINO model holds numbers of 4 or 8 bits."""
    from openvino import Type

    kinds = {node.get_output_element_type(0) for node in model.get_ops() if node.outputs()}
    return bool(kinds & {Type.u4, Type.u8})


def _grid_of_product(node) -> Grid | None:
    matrix = large_matrix(node, LEAST)
    return None if matrix is None else grid_of(matrix)


def _weights(grids: list[Grid]):
    """The matrices of the grids, stacked, as one fp32 node [N, K] of an OpenVINO model. The CPU plugin recognises the
    operations that unpack it."""
    from openvino import Shape, Tensor, Type
    from openvino import opset13 as ops

    levels = np.concatenate([grid.levels for grid in grids])
    rows, groups, _ = levels.shape
    if grids[0].bits == 4:
        pairs = np.ascontiguousarray(levels[..., 0::2] | levels[..., 1::2] << 4)
        levels = Tensor(pairs, Shape([rows, groups, GROUP]), Type.u4)
    numbers = ops.constant(levels, shared_memory=False)
    zero, factor = (
        ops.constant(np.concatenate(parts))
        for parts in zip(*((grid.zero, grid.factor) for grid in grids), strict=True)
    )
    numbers = ops.multiply(ops.subtract(ops.convert(numbers, "f32"), zero), factor)
    return ops.reshape(numbers, np.int64([rows, groups * GROUP]), False)


def _trial_pass(packed: bool):
    """Return a function that runs one row and then five rows through two matrices, each of which takes 32 MB in fp32,
    for timing. packed: whether the matrices are read as they are stored."""
    import openvino
    from openvino import opset13 as ops

    rows_input = ops.parameter([-1, 1024], np.float32)
    rows, levels = rows_input, np.arange(16, dtype=np.float32)
    for shape in ((8192, 1024), (1024, 8192)):
        matrix = np.resize(levels, shape)
        rows = ops.matmul(rows, matrix, False, True)
    model = openvino.Model([rows], [rows_input])
    if packed:
        store_products(model)
    request = core().compile_model(model, "CPU", settings(threads())).create_infer_request()
    examples = [np.zeros((count, 1024), np.float32) for count in (1, 5)]

    def run():
        for example in examples:
            request.infer([example])

    return run
