"""Joins products: instead of multiplying the same rows by several matrices, a model multiplies them once by the joined
matrix.

A layer multiplies the same rows by the matrices of query, key and value, and other rows by two matrices of its MLP. A
joined product starts the threads only once and reads one long stretch of memory. The numbers stay the same.

If the matrices share memory with the weights of the converted module, a joined matrix is not a second copy in memory:
these weights become views into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from engine.fast.cpu.freed_memory import not_wanted


def join_products(model, weights: Iterable[Tensor] = ()) -> int:
    """Join those products of an OpenVINO model that multiply the same rows; returns the number of joined products.

    weights: the weights of the module that was converted to this model. If all matrices of a joined product share
    memory with such weights, these weights become views into the joined matrix.
    """
    places = {weight.data_ptr(): weight for weight in weights}
    several = [group for group in products_by_rows(model) if len(group) > 1]
    for group in several:
        _join(group, places)
    model.validate_nodes_and_infer_types()
    return len(several)


def products_by_rows(model) -> Iterable[list]:
    """The nodes of an OpenVINO model that multiply rows by a matrix of weights, grouped by their rows."""
    groups: dict[tuple, list] = {}
    for node in model.get_ordered_ops():
        if by_a_matrix(node):
            rows = node.input_value(0)
            key = rows.get_node().get_friendly_name(), rows.get_index(), _transposed(node)
            groups.setdefault(key, []).append(node)
    return groups.values()


def by_a_matrix(node) -> bool:
    """Whether the node multiplies rows by a matrix of weights."""
    if node.get_type_name() != "MatMul" or node.get_attributes()["transpose_a"]:
        return False
    weights = node.input_value(1).get_node()
    return weights.get_type_name() == "Constant" and len(weights.get_output_shape(0)) == 2


def _transposed(node) -> bool:
    return node.get_attributes()["transpose_b"]


def _join(group: Sequence, places: dict[int, Tensor]) -> None:
    from openvino import opset13

    transposed = _transposed(group[0])
    outputs = 0 if transposed else 1
    matrices = [node.input_value(1).get_node().data for node in group]
    own = [places.get(matrix.ctypes.data) for matrix in matrices] if transposed else []
    joined = opset13.constant(_joined(matrices, own, outputs), shared_memory=True)
    join(group, joined, [matrix.shape[outputs] for matrix in matrices], transposed)


def join(group: Sequence, joined, sizes: Sequence[int], transposed: bool = True) -> None:
    """Replace the nodes in ``group``, which multiply the same rows by different matrices, by one node that multiplies
    the rows by the joined matrix. Whatever used a node's output then uses that node's columns of the new product.

    group: the nodes to replace. joined: the OpenVINO node that holds the joined matrix. sizes: the number of outputs of
    each node in ``group``. transposed: whether the joined matrix is [outputs, inputs] instead of [inputs, outputs].
    """
    from openvino import opset13

    product = opset13.matmul(group[0].input_value(0), joined, False, transposed)
    parts = product
    if len(group) > 1:
        parts = opset13.variadic_split(product, np.int64(-1), np.int64(sizes))
    for index, node in enumerate(group):
        node.output(0).replace(parts.output(index))


def _joined(
    matrices: Sequence[np.ndarray], own: Sequence[Tensor | None], outputs: int
) -> np.ndarray:
    """Return the matrices joined along axis ``outputs``. own: for each matrix, the module's weight that shares memory
    with it, or None if no weight does. If every matrix has such a weight, the weights become views into the joined
    matrix."""
    all_own = len(own) > 0 and all(
        weight is not None and weight.is_contiguous() and weight.shape == matrix.shape
        for weight, matrix in zip(own, matrices, strict=True)
    )
    if not all_own:
        return np.concatenate(matrices, outputs)
    ends = [weight.data_ptr() + weight.nbytes for weight in own]
    first, rows = own[0].detach(), sum(map(len, own))
    if ends[:-1] == [weight.data_ptr() for weight in own[1:]] and _reaches(first, ends[-1]):
        return first.as_strided((rows, first.shape[1]), first.stride()).numpy()
    joined = torch.cat([weight.detach() for weight in own])
    for weight, part in zip(own, joined.split([len(weight) for weight in own]), strict=True):
        weight.data, before = part, weight.data
        not_wanted(before.data_ptr(), before.nbytes)
    return joined.numpy()


def _reaches(tensor: Tensor, end: int) -> bool:
    """Whether the tensor's storage reaches up to this address."""
    memory = tensor.untyped_storage()
    return memory.data_ptr() + memory.nbytes() >= end
