"""Products with matrices of 4 or 8 bits, read as they are stored."""

import copy

import gguf
import numpy as np
import openvino
import pytest
import torch
from openvino import opset13 as ops

from engine.errors import UserError
from engine.fast.cpu import fixed, store, stored_products
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.core_count import settings
from engine.fast.cpu.runtime import core
from engine.fast.cpu.stored_products import as_exact, grid_of, multiply_stored, store_products
from tests.engine.tiny import tiny_hf_model
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

FORMATS = {4: gguf.GGMLQuantizationType.Q4_1, 8: gguf.GGMLQuantizationType.Q8_0}


def unpacked(bits: int, outputs: int, inputs: int, seed: int = 0) -> np.ndarray:
    """Return a matrix as a GGUF file stores it in so many bits, read by the library for these files."""
    plain = np.random.default_rng(seed).standard_normal((outputs, inputs)).astype(np.float32)
    return gguf.dequantize(gguf.quantize(plain, FORMATS[bits]), FORMATS[bits])


@pytest.mark.parametrize("bits", FORMATS)
def test_the_numbers_of_a_file_are_found_again(bits):
    matrix = unpacked(bits, 64, 96)
    grid = grid_of(matrix)
    assert grid.bits == bits and grid.levels.dtype == np.uint8
    again = (grid.levels - grid.zero.astype(np.float64)) * grid.factor
    assert np.abs(again.reshape(matrix.shape) - matrix).max() < 1e-6
    packed = gguf.quantize(matrix, FORMATS[bits])
    block = packed.reshape(64, 3, -1)[0, 0]
    stored = block[4:] if bits == 4 else block[2:].view(np.int8)
    levels = np.concatenate([stored & 15, stored >> 4]) if bits == 4 else 128 + stored.astype(int)
    assert grid.levels[0, 0].tolist() == levels.tolist()


def eight_a_row(outputs: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers of 8 bits, up to 127 in each row, and their products with a factor for each row, in fp32."""
    numbers = np.random.default_rng(2)
    levels = numbers.integers(-127, 128, (outputs, inputs))
    levels[:, 5] = 127
    factor = numbers.uniform(1e-4, 1e-1, (outputs, 1)).astype(np.float32)
    return levels, levels.astype(np.float32) * factor


def test_a_factor_of_a_whole_row_is_found_again():
    levels, matrix = eight_a_row(300, 96)
    grid = grid_of(matrix)
    assert grid.bits == 8
    assert (grid.levels.reshape(levels.shape) - 128.0 == levels).all()
    assert np.array_equal(grid.factor * (grid.levels - grid.zero), matrix.reshape(300, 3, 32))
    matrix[7, 9] = np.nextafter(matrix[7, 9], np.float32(9))
    assert grid_of(matrix) is None


def test_other_numbers_stay():
    plain = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    assert grid_of(plain) is None and grid_of(unpacked(4, 64, 96)[:, :90]) is None
    spoiled = unpacked(4, 64, 96)
    spoiled[40, 50] = np.nextafter(spoiled[40, 50], np.float32(9))
    assert grid_of(spoiled) is None
    assert grid_of(np.zeros((4, 32), np.float32)).bits == 4


@pytest.mark.parametrize("bits", FORMATS)
def test_products_are_as_exact_as_sums_in_fp32(bits):
    assert as_exact(multiply_stored, unpacked(bits, 256, 512))
    assert as_exact(multiply_stored, eight_a_row(256, 512)[1])


def test_a_kernel_that_rounds_rows_to_bf16_is_found():
    def rounding(matrix):
        multiply = multiply_stored(matrix)
        return lambda rows: multiply(torch.from_numpy(rows).bfloat16().float().numpy())

    assert not as_exact(rounding, unpacked(4, 256, 512))


def model_of(matrices):
    given = ops.parameter([1, -1, matrices[0].shape[1]], np.float32)
    products = [ops.matmul(given, matrix, False, True) for matrix in matrices]
    return openvino.Model(products, [given])


def test_products_of_the_same_rows_become_one_if_their_bits_are_the_same():
    four, eight = (unpacked(bits, 400, 320, seed=bits) for bits in FORMATS)
    model = model_of([four, four[::-1].copy()])
    rows = np.random.default_rng(1).standard_normal((1, 5, 320)).astype(np.float32)
    assert store_products(model) == 2
    assert sum(node.get_type_name() == "MatMul" for node in model.get_ops()) == 1
    found = core().compile_model(model, "CPU", settings(1))(rows)
    for output, matrix in zip(found.values(), (four, four[::-1]), strict=True):
        assert np.allclose(output, rows @ matrix.T, atol=1e-4)
    assert store_products(model_of([four, eight])) == 0


@pytest.fixture
def setting(monkeypatch):
    def set_to(value):
        monkeypatch.setenv("DRAFTSCOPE_WEIGHTS", value)
        stored_products.reads_stored.cache_clear()

    yield set_to
    stored_products.reads_stored.cache_clear()


def test_the_setting_decides_unless_a_kernel_rounds(setting, monkeypatch):
    for way in ("stored", "unpacked"):
        setting(way)
        assert stored_products.reads_stored() is (way == "stored")
    for pays in (True, False):
        monkeypatch.setattr(stored_products, "_pays", lambda pays=pays: pays)
        setting("")
        assert stored_products.reads_stored() is pays
    monkeypatch.setattr(stored_products, "_proven", lambda: False)
    setting("stored")
    assert stored_products.reads_stored() is False
    setting("4 bits")
    with pytest.raises(UserError, match="must be stored or unpacked, not '4 bits'"):
        stored_products.reads_stored()


def written(module, prompt, count) -> tuple[list[int], bool, list[int]]:
    """Return the likeliest tokens after a prompt by compiled passes, whether these read weights as they are stored, and
    the numbers of rows for which there are graphs."""
    model = CompiledModel(copy.deepcopy(module), None, "tiny")
    model.expect((), 3)
    session = model.session(len(prompt) + count)
    session.prefill(prompt[:-1])
    text = prompt[-1:]
    for _ in range(count):
        logits, _ = session.feed(text[-1:], [-1])
        session.commit([0])
        text.append(int(logits[-1].argmax()))
    graphs = model.passes.graphs_with(()).graphs
    sizes = [rows for rows in range(1, 6) if graphs.of(rows) is not graphs.general]
    return text[1:], model.reads_stored, sizes


@pytest.mark.parametrize("large", [False, True])
def test_a_model_of_four_bits_writes_the_same_text_from_them(setting, monkeypatch, large):
    """Its matrices are those of a GGUF file; the texts of both ways are those of transformers' generate. A large model has
    graphs for a few numbers of rows, too, if its weights are read as they are stored, and these are kept in files."""
    files, keep = [], store._keep
    monkeypatch.setattr(store, "_keep", lambda made, path: files.append(path) or keep(made, path))
    if large:
        monkeypatch.setattr(fixed, "MOST_PARAMETERS", 1000)
        monkeypatch.setattr(store, "MOST_KEPT", 1000)
    module = tiny_hf_model(
        "llama",
        vocab_size=512,
        hidden_size=320,
        intermediate_size=640,
        num_attention_heads=5,
        num_key_value_heads=5,
        head_dim=64,
    )
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.ndim == 2:
                bits = 8 if "embed" in name or "lm_head" in name else 4
                again = gguf.quantize(8 * weight.numpy(), FORMATS[bits])
                weight.copy_(torch.from_numpy(gguf.dequantize(again, FORMATS[bits])))
    prompt = list(range(7, 13))  # its rows take one of the graphs of the text
    ids = torch.tensor([prompt])
    expected = module.generate(ids, max_new_tokens=24, do_sample=False)[0, len(prompt) :].tolist()
    for way in ("stored", "unpacked", "stored"):  # at last from the file of a kept graph
        setting(way)
        text, stored, sizes = written(module, prompt, 24)
        assert text == expected, way
        assert stored is (way == "stored")
        assert sizes == ([1, 5] if not large else [1, 4] if stored else [])
    assert len(files) == len({*files}), "the last time they are read from files"
    assert {path.suffix for path in files} == {store.STORED, *(() if large else (".blob",))}
