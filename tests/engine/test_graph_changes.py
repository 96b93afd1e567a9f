"""Products of the same rows with several matrices, joined in a graph."""

import numpy as np
import pytest
import torch
from torch import nn

from engine.fast.cpu import store
from engine.fast.cpu.core_count import settings
from engine.fast.cpu.joining import join_products
from engine.fast.cpu.runtime import core
from engine.fast.cpu.sharing import LEAST, share_matrices
from engine.fast.cpu.store import _content, compiled


class Products(nn.Module):
    """A module of three linear maps of the same rows, one with a bias, and one map of other rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.maps = nn.ModuleList(nn.Linear(6, size, bias=size == 5) for size in (4, 5, 3))
        self.other = nn.Linear(4, 6, bias=False)

    def forward(self, rows):
        first, second, third = (each(rows) for each in self.maps)
        return first * third.sum(-1, keepdim=True), second, self.other(first)


@pytest.fixture
def converted(monkeypatch):
    """Return converted(graph, rows), which returns the graph as OpenVINO reads it, with all its products."""
    monkeypatch.setattr(store, "join_products", lambda model, weights: 0)
    return lambda graph, rows: store._converted(graph, [rows])


def products(model) -> int:
    return sum(node.get_type_name() == "MatMul" for node in model.get_ops())


def test_products_of_the_same_rows_become_one_and_give_the_same_numbers(converted):
    graph, rows = Products(), torch.randn(7, 6, generator=torch.Generator().manual_seed(1))
    model = converted(graph, rows)
    assert products(model) == 4
    assert join_products(model) == 1 and products(model) == 2
    found = core().compile_model(model, "CPU", settings(1))(rows.numpy())
    for one, other in zip(found.values(), graph(rows), strict=True):
        assert torch.allclose(torch.from_numpy(one), other, atol=1e-5)


def test_a_graph_without_such_products_stays(converted):
    graph = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    model = converted(graph, torch.ones(2, 3))
    assert join_products(model) == 0 and products(model) == 2


def product_twice(second: np.ndarray):
    """rows @ first @ second"""
    import openvino
    from openvino import opset13 as ops

    first = np.arange(128 * 128, dtype=np.float32).reshape(128, 128) / 1000
    given = ops.parameter([2, 128], np.float32)
    small = ops.constant(np.ones((1, 128), np.float32))
    rows = ops.add(ops.add(given, small), ops.constant(np.ones((1, 128), np.float32)))
    for matrix in (first, first + second):
        rows = ops.matmul(rows, ops.constant(matrix), False, True)
    return openvino.Model([rows], [given])


def constants(model) -> list[int]:
    return [
        node.get_byte_size()
        for node in model.get_ordered_ops()
        if node.get_type_name() == "Constant"
    ]


def test_equal_matrices_are_shared_and_others_are_not():
    nothing, something = np.zeros((128, 128), np.float32), np.zeros((128, 128), np.float32)
    something[5, 7] = 1
    rows = np.random.default_rng(1).standard_normal((2, 128)).astype(np.float32)
    for added, replaced in ((nothing, 1), (something, 0)):
        plain, shared = product_twice(added), product_twice(added)
        assert share_matrices(shared) == replaced
        large = [size for size in constants(shared) if size >= LEAST]
        assert len(large) == 2 - replaced
        assert len(constants(shared)) == len(constants(plain)) - replaced  # small ones stay
        found = [
            core().compile_model(each, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([rows])[0]
            for each in (plain, shared)
        ]
        np.testing.assert_array_equal(*found)


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, rows):
        for _ in range(4):
            rows = torch.tanh(self.layer(rows))
        return rows


def test_a_compiled_graph_keeps_one_copy():
    graph, rows = Repeated(), torch.randn(3, 256)
    content = _content(compiled(graph, [rows], "repeated").model)
    matrix = 4 * 256 * 256
    assert matrix // 2 < len(content) < 2 * matrix
