"""Replaces equal matrices of a graph by one shared matrix.

A graph that holds several passes of the same module has the module's matrices once for each pass. If the passes share
them, all passes but the first find the matrices in the processor's caches, and the graph needs less memory.
"""

from __future__ import annotations

import hashlib

import numpy as np

LEAST = 2**14
"""Bytes of the smallest constant that is shared; smaller constants cost little."""


def share_matrices(model) -> int:
    """Let equal large constants of an OpenVINO model share one node; returns the number of constants replaced."""
    first: dict[tuple, object] = {}
    count = 0
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Constant" or node.get_byte_size() < LEAST:
            continue
        first_node = first.setdefault(_content(node), node)
        if first_node is not node:
            node.output(0).replace(first_node.output(0))
            count += 1
    return count


def _content(node) -> tuple:
    numbers = np.ascontiguousarray(node.data).view(np.uint8)
    shape = tuple(node.get_output_shape(0))
    return str(node.get_output_element_type(0)), shape, hashlib.blake2b(numbers).digest()
