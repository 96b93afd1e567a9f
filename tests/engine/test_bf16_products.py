"""Products of fp32 rows with matrices of bf16 numbers, split into three products of bf16 numbers."""

import numpy as np
import openvino
import pytest
import torch
from openvino import opset13 as ops

from engine.cpu import bf16_products
from engine.cpu.bf16_products import LEAST, split_products
from engine.cpu.runtime import core
from engine.cpu.threads import settings
from engine.parts.eight_bit import packed, unpacked

WIDE, NARROW = 320, 2000  # columns of rows, columns of results
needs_bf16 = pytest.mark.skipif(
    "BF16" not in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"),
    reason="this CPU has no bf16 units",
)


def matrix_of_bf16(outputs: int, inputs: int, seed: int = 0) -> np.ndarray:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(outputs, inputs, generator=generator).bfloat16().float().numpy()


def model_of(matrix: np.ndarray, shape: list[int], transposed: bool = True):
    given = ops.parameter(shape, np.float32)
    constant = ops.constant(matrix if transposed else np.ascontiguousarray(matrix.T))
    return openvino.Model([ops.matmul(given, constant, False, transposed)], [given])


def computed(model, rows: np.ndarray) -> np.ndarray:
    request = core().compile_model(model, "CPU", settings(2)).create_infer_request()
    return next(iter(request.infer([rows]).values())).copy()


def names(model) -> list[str]:
    return [node.get_type_name() for node in model.get_ops()]


def rows_of(*shape: int, spread: float = 1.0) -> np.ndarray:
    """Rows whose numbers use all 24 bits of their mantissas, of very different sizes if the spread is large."""
    generator = np.random.default_rng(1)
    sizes = np.exp(spread * generator.standard_normal(shape))
    return (generator.standard_normal(shape) * sizes).astype(np.float32)


@needs_bf16
@pytest.mark.parametrize("count", [1, 2, 5, 9, 17, 33])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("transposed", [True, False])
def test_no_bit_of_the_rows_is_lost(count, rank, transposed):
    """The error against exact arithmetic is no larger than that of sums in fp32. Two parts instead of three would
    exceed the bound, as the second assertion shows."""
    matrix, rows = matrix_of_bf16(NARROW, WIDE), rows_of(count, WIDE, spread=2.0)
    model = model_of(matrix, [-1, WIDE] if rank == 2 else [1, -1, WIDE], transposed)
    assert split_products(model) == 1 and "MatMul" not in names(model)
    found = computed(model, rows if rank == 2 else rows[None]).reshape(count, NARROW)
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    size = np.abs(rows).astype(np.float64) @ np.abs(matrix.T)  # of the numbers that are summed
    bound = 2.0**-20 * size
    assert (np.abs(found - exact) < bound).all()
    upper = torch.from_numpy(rows).bfloat16().float()
    lower = (torch.from_numpy(rows) - upper).bfloat16().float()
    two_parts = (upper + lower).numpy().astype(np.float64) @ matrix.T
    assert (np.abs(two_parts - exact) >= bound).any()


@needs_bf16
def test_rows_that_several_matrices_read_are_split_once():
    given = ops.parameter([1, 3, WIDE], np.float32)
    matrices = [matrix_of_bf16(NARROW, WIDE, seed) for seed in range(2)]
    found = [ops.matmul(given, matrix, False, True) for matrix in matrices]
    model = openvino.Model(found, [given])
    assert split_products(model) == 2 and names(model).count("Subtract") == 2
    request = core().compile_model(model, "CPU", settings(2)).create_infer_request()
    rows = rows_of(1, 3, WIDE)
    for output, matrix in zip(request.infer([rows]).values(), matrices, strict=True):
        assert np.allclose(output, rows @ matrix.T, atol=1e-3)


@needs_bf16
def test_a_model_from_the_cache_folder_gives_the_same_numbers():
    model, rows = model_of(matrix_of_bf16(NARROW, WIDE), [-1, WIDE]), rows_of(4, WIDE)
    split_products(model)
    made = core().compile_model(model, "CPU", settings(2))
    kept = core().import_model(made.export_model().getvalue(), "CPU", settings(2))
    one, other = (next(iter(each(rows).values())) for each in (made, kept))
    assert np.array_equal(one, other)


def eight_bit_matrix() -> np.ndarray:
    """Rows of very different sizes, one of them of zeros, as they are after a file in 8 bits was read."""
    sizes = np.logspace(-6, 3, NARROW, dtype=np.float32)[:, None]
    sizes[7] = 0
    stored = packed({"w": torch.from_numpy(matrix_of_bf16(NARROW, WIDE) * sizes)})
    return unpacked(stored)["w"].numpy()


@needs_bf16
def test_weights_in_8_bits_are_bf16_numbers_times_a_factor():
    matrix, rows = eight_bit_matrix(), rows_of(4, WIDE)
    model = model_of(matrix, [-1, WIDE])
    assert split_products(model) == 1
    size = np.abs(rows).astype(np.float64) @ np.abs(matrix.T)
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    assert (np.abs(computed(model, rows) - exact) <= 2.0**-20 * size).all()


def test_8_bits_with_one_other_number_stay():
    matrix = eight_bit_matrix()
    matrix[3, 5] = np.nextafter(matrix[3, 5], np.float32(1))
    assert split_products(model_of(matrix, [-1, WIDE])) == 0


def test_a_matrix_of_other_numbers_stays():
    matrix = matrix_of_bf16(NARROW, WIDE)
    matrix[-1, -1] = np.float32(1) + np.float32(2.0**-23)
    model = model_of(matrix, [-1, WIDE])
    assert split_products(model) == 0 and "MatMul" in names(model)


def test_a_small_matrix_stays():
    model = model_of(matrix_of_bf16(LEAST // WIDE, WIDE), [-1, WIDE])
    assert split_products(model) == 0


@pytest.mark.parametrize(("fp32", "bf16", "pays"), [(2.0, 1.0, True), (1.0, 0.99, False)])
def test_a_cpu_decides_by_a_measurement(monkeypatch, fp32, bf16, pays):
    class Units:
        def get_property(self, device, name):
            return ["FP32", "BF16"]

    monkeypatch.setattr(bf16_products, "core", Units)
    monkeypatch.setattr(bf16_products, "_trial_pass", lambda split: lambda: None)
    monkeypatch.setattr(bf16_products, "timed", lambda passes: {False: [fp32], True: [bf16]})
    assert bf16_products.bf16_pays.__wrapped__() is pays


def test_a_cpu_without_bf16_units_keeps_fp32(monkeypatch):
    class Units:
        def get_property(self, device, name):
            return ["FP32", "INT8"]

    monkeypatch.setattr(bf16_products, "core", Units)
    monkeypatch.setattr(bf16_products, "timed", pytest.fail)
    assert bf16_products.bf16_pays.__wrapped__() is False


def test_products_stay_in_fp32_where_the_plugin_is_not_found(monkeypatch):
    def missing():
        raise FileNotFoundError("OpenVINO's library for CPUs was not found.")

    monkeypatch.setattr(bf16_products, "own_operations", missing)
    assert bf16_products.bf16_pays.__wrapped__() is False
