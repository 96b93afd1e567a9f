"""Joins the products of the same rows with several matrices into one product with all of them.

A layer multiplies the same rows by the matrices of query, key and value, and by two matrices of its MLP. One call
starts its threads once and reads one long stretch of memory. The numbers stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def join_products(model) -> int:
    """Join products in an OpenVINO model; returns the number of joined products."""
    groups: dict[tuple, list] = {}
    for node in model.get_ordered_ops():
        if by_a_matrix(node):
            rows = node.input_value(0)
            key = rows.get_node().get_friendly_name(), rows.get_index(), _transposed(node)
            groups.setdefault(key, []).append(node)
    several = [group for group in groups.values() if len(group) > 1]
    for group in several:
        _join(group)
    model.validate_nodes_and_infer_types()
    return len(several)


def by_a_matrix(node) -> bool:
    """Whether the node multiplies rows by a matrix of weights."""
    if node.get_type_name() != "MatMul" or node.get_attributes()["transpose_a"]:
        return False
    weights = node.input_value(1).get_node()
    return weights.get_type_name() == "Constant" and len(weights.get_output_shape(0)) == 2


def _transposed(node) -> bool:
    return node.get_attributes()["transpose_b"]


def _join(group: Sequence) -> None:
    from openvino import opset13

    transposed = _transposed(group[0])
    outputs = 0 if transposed else 1
    matrices = [node.input_value(1).get_node().data for node in group]
    joined = opset13.constant(np.concatenate(matrices, outputs))
    product = opset13.matmul(group[0].input_value(0), joined, False, transposed)
    sizes = np.array([matrix.shape[outputs] for matrix in matrices], np.int64)
    parts = opset13.variadic_split(product, opset13.constant(np.int64(-1)), opset13.constant(sizes))
    for index, node in enumerate(group):
        node.output(0).replace(parts.output(index))
