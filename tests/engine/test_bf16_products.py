"""Products of fp32 rows with matrices of bf16 numbers, split into three products of bf16 numbers."""

import json
from types import SimpleNamespace

import numpy as np
import openvino
import pytest
import torch
from openvino import opset13 as ops

from engine.fast.cpu import bf16_products
from engine.fast.cpu.bf16_products import (
    COUNTS,
    LEAST,
    lossless,
    multiply_in_thirds,
    split_products,
)
from engine.fast.cpu.core_count import settings
from engine.fast.cpu.row_shape import rounded
from engine.fast.cpu.runtime import core
from engine.model.session import PREFILL_ROWS
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


def compiled(model):
    request = core().compile_model(model, "CPU", settings(2)).create_infer_request()
    return lambda rows: next(iter(request.infer([rows]).values())).copy()


def names(model) -> list[str]:
    return [node.get_type_name() for node in model.get_ops()]


def rows_of(*shape: int, spread: float = 1.0) -> np.ndarray:
    """Rows whose numbers use all 24 bits of their mantissas, of very different sizes if the spread is large."""
    generator = np.random.default_rng(1)
    sizes = np.exp(spread * generator.standard_normal(shape))
    return (generator.standard_normal(shape) * sizes).astype(np.float32)


def within(found: np.ndarray, rows: np.ndarray, matrix: np.ndarray) -> bool:
    """Return whether no error is larger than fp32 can make in three sums of K products, in any order, and in the sum of
    the three."""
    exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
    size = np.abs(rows).astype(np.float64) @ np.abs(matrix.T)  # of the numbers that are summed
    return bool((np.abs(found - exact) <= size * 2.0**-24 * (rows.shape[1] + 2)).all())


@needs_bf16
@pytest.mark.parametrize("rank, transposed", [(2, True), (3, False), (3, True)])
def test_products_are_as_exact_as_sums_in_fp32(rank, transposed):
    """On average they are no worse than the plugin's own fp32 products of the same numbers."""
    matrix = matrix_of_bf16(NARROW, WIDE)
    shape = [-1, WIDE] if rank == 2 else [1, -1, WIDE]
    plain, split = (model_of(matrix, shape, transposed) for _ in range(2))
    assert split_products(split) == 1 and "MatMul" not in names(split)
    requests = [compiled(model) for model in (plain, split)]
    for count in (1, 2, 5, 9, 17, 33):
        rows = rows_of(count, WIDE, spread=2.0)
        given = rows if rank == 2 else rows[None]
        before, found = (one(given).reshape(count, NARROW) for one in requests)
        assert within(found, rows, matrix)
        exact = rows.astype(np.float64) @ matrix.T.astype(np.float64)
        assert np.abs(found - exact).mean() < 1.5 * np.abs(before - exact).mean()


def in_numpy(matrix: np.ndarray, rounding=None, at=()):
    """Return products of fp32 numbers, whose sums are rounded for some numbers of rows."""

    def multiply(rows: np.ndarray) -> np.ndarray:
        found = (rows.astype(np.float64) @ matrix.T.astype(np.float64)).astype(np.float32)
        return rounding(found) if len(rows) in at else found

    return multiply


def to_bf16(numbers: np.ndarray) -> np.ndarray:
    return torch.from_numpy(numbers).bfloat16().float().numpy()


def one_bit_less(found: np.ndarray) -> np.ndarray:
    found[-1, 3] = np.nextafter(found[-1, 3], np.float32(0))
    return found


def test_the_check_passes_exact_products_and_finds_rounding_at_any_one_number_of_rows():
    assert lossless(in_numpy, COUNTS)
    for count in (1, 17, 33, 128, PREFILL_ROWS):
        assert not lossless(lambda matrix, at={count}: in_numpy(matrix, to_bf16, at), COUNTS)
    assert not lossless(lambda matrix: in_numpy(matrix, one_bit_less, {33}), COUNTS)
    assert {rounded(rows, ()) for rows in range(1, PREFILL_ROWS + 1)} <= {*COUNTS}


@needs_bf16
@pytest.mark.parametrize("parts", [1, 2])
def test_fewer_parts_fail_the_check(monkeypatch, parts):
    whole = bf16_products._in_thirds

    def some(rows):
        high, *rest = ops.split(whole(rows).output(0), np.int64(0), 3).outputs()
        kept = [high, *rest][:parts]
        zero = ops.subtract(high, high)
        return ops.concat([*kept, *[zero] * (3 - parts)], 0)

    monkeypatch.setattr(bf16_products, "_in_thirds", some)
    assert not lossless(multiply_in_thirds, [5])


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
    assert within(compiled(model)(rows), rows, matrix)


def test_small_matrices_and_those_of_other_numbers_stay():
    """One number that is no bf16 number, of 16 bits or of 8 bits times a factor, is enough."""
    plain, eight = matrix_of_bf16(NARROW, WIDE), eight_bit_matrix()
    plain[-1, -1] = np.float32(1) + np.float32(2.0**-23)
    eight[3, 5] = np.nextafter(eight[3, 5], np.float32(1))
    for matrix in (plain, eight, matrix_of_bf16(LEAST // WIDE, WIDE)):
        model = model_of(matrix, [-1, WIDE])
        assert split_products(model) == 0 and "MatMul" in names(model)


@pytest.fixture
def quick_units(monkeypatch, tmp_path):
    """Simulate a CPU on which products in bf16 take half of the time. Its kernels are those of this machine."""

    class Units:
        def get_property(self, device, name):
            if name == "OPTIMIZATION_CAPABILITIES":
                return ["FP32", "BF16"]
            return core().get_property(device, name)

        def __getattr__(self, name):
            return getattr(core(), name)

    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(bf16_products, "core", Units)
    monkeypatch.setattr(bf16_products, "_trial_pass", lambda split: lambda: None)
    monkeypatch.setattr(bf16_products, "timed", lambda passes: {False: [2.0], True: [1.0]})
    monkeypatch.setattr(bf16_products, "multiply_in_thirds", in_numpy)


@pytest.mark.parametrize(
    ("fp32", "bf16", "pays"),
    [([2.0], [1.0], True), ([1.0], [0.99], False), ([1.0, 9.0, 9.0], [1.1, 1.2, 1.3], False)],
)
def test_a_cpu_decides_by_its_fastest_rounds(monkeypatch, quick_units, fp32, bf16, pays):
    monkeypatch.setattr(bf16_products, "timed", lambda passes: {False: fp32, True: bf16})
    assert bf16_products.bf16_pays.__wrapped__() is pays


@needs_bf16
def test_this_cpu_uses_them_only_if_its_kernels_lose_no_bit(monkeypatch, quick_units):
    monkeypatch.setattr(bf16_products, "COUNTS", (1, 5, 16, 17, 33, 64))
    monkeypatch.setattr(bf16_products, "multiply_in_thirds", multiply_in_thirds)
    exact = lossless(multiply_in_thirds, bf16_products.COUNTS)
    assert bf16_products.bf16_pays.__wrapped__() is exact


def test_a_fast_cpu_that_rounds_keeps_fp32(monkeypatch, quick_units):
    rounding = lambda matrix: in_numpy(matrix, to_bf16, {17})
    monkeypatch.setattr(bf16_products, "multiply_in_thirds", rounding)
    assert bf16_products.bf16_pays.__wrapped__() is False


def test_the_check_is_made_once_per_machine(monkeypatch, quick_units):
    assert bf16_products.bf16_pays.__wrapped__() is True
    monkeypatch.setattr(bf16_products, "multiply_in_thirds", pytest.fail)
    assert bf16_products.bf16_pays.__wrapped__() is True
    checked = []
    monkeypatch.setattr(
        bf16_products, "multiply_in_thirds", lambda matrix: checked.append(1) or in_numpy(matrix)
    )
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "another")
    assert bf16_products.bf16_pays.__wrapped__() is True and checked
    bf16_products.PROVEN.path.write_text(json.dumps({bf16_products.machine(): "yes"}))
    assert bf16_products.bf16_pays.__wrapped__() is True and len(checked) == 2


def test_products_stay_in_fp32_without_bf16_units_and_where_the_plugin_is_not_found(monkeypatch):
    def missing():
        raise FileNotFoundError("OpenVINO's library for CPUs was not found.")

    monkeypatch.setattr(bf16_products, "timed", pytest.fail)
    with monkeypatch.context() as patch:
        patch.setattr(bf16_products, "own_operations", missing)
        assert bf16_products.bf16_pays.__wrapped__() is False
    monkeypatch.setattr(
        bf16_products, "core", lambda: SimpleNamespace(get_property=lambda *_: ["FP32", "INT8"])
    )
    assert bf16_products.bf16_pays.__wrapped__() is False
