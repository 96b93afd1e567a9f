"""Equal matrices of a graph become one constant, and the numbers stay the same."""

import numpy as np
import torch
from torch import nn

from engine.fast.cpu.runtime import core
from engine.fast.cpu.sharing import LEAST, share_matrices
from engine.fast.cpu.store import _content, compiled


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
