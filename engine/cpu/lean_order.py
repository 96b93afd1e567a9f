"""How lean activations and weights lie in memory, picked once a process by measuring.

What a product of a few rows costs depends on the processor and on the library that computes it, by
factors of three to five. Activations lie as the best one likes them:

``Columns``: [features, R rows], W @ x. Intel's MKL is at its best so on Intel's processors.
``Rows``: [R rows, features], x @ W.T: what nn.Linear does; the plain choice.
``Packed``: as Rows, with larger weights in oneDNN's own blocked format, which replaces the plain one.

Letters in shapes: R rows, H heads, D head size; "laid" is [R, features] or [features, R].
"""

import time
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

CLEARLY = 1.25
"""How much faster a way must be to replace the plain one: noise shall not change the choice."""

WORTH_PACKING = 2**17
"""Elements from which on a packed weight saves more than oneDNN's longer call costs."""


class Order(Protocol):
    """How activations lie, and products in that order. bias: [out] or None."""

    features: int
    """The dimension of the features; the other one is that of the rows."""

    def hold(self, weight: Tensor, packable: bool = True) -> Tensor:
        """weight [out, in] as ``product`` takes it: a view of it, or a form that replaces it.

        packable: whether it may be replaced; not where others use it, too.
        """

    def lay(self, rows: Tensor) -> Tensor:
        """[R, features] -> laid; the same memory where that is possible"""

    def as_rows(self, x: Tensor) -> Tensor:
        """laid -> [R, features], contiguous; the same memory where that is possible"""

    def split_heads(self, x: Tensor, size: int) -> Tensor:
        """laid, H * D features -> [H, R, D], contiguous"""

    def join_heads(self, heads: Tensor) -> Tensor:
        """[H, R, D] -> laid, H * D features"""

    def mean(self, x: Tensor, share: Tensor, floor: Tensor) -> Tensor:
        """laid -> floor + each row's mean, laid, one feature. share: 1 / features each, as of one
        row laid and transposed."""

    def product(self, held: Tensor, x: Tensor, bias: Tensor | None) -> Tensor:
        """weight [out, in] times each row, plus bias"""

    def add_product(self, hidden: Tensor, held: Tensor, x: Tensor) -> None:
        """hidden += weight [out, in] times each row of x"""


class Columns:
    """See ``Order``."""

    features = 0

    @staticmethod
    def hold(weight: Tensor, packable: bool = True) -> Tensor:
        return weight

    @staticmethod
    def lay(rows: Tensor) -> Tensor:
        return rows.t().contiguous()

    @staticmethod
    def as_rows(x: Tensor) -> Tensor:
        return x.t().contiguous()

    @staticmethod
    def split_heads(x: Tensor, size: int) -> Tensor:
        return x.unflatten(0, (-1, size)).transpose(1, 2).contiguous()

    @staticmethod
    def join_heads(heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(-1, heads.shape[1])

    @staticmethod
    def mean(x: Tensor, share: Tensor, floor: Tensor) -> Tensor:
        return torch.addmm(floor, share, x)

    @staticmethod
    def product(held: Tensor, x: Tensor, bias: Tensor | None) -> Tensor:
        return torch.mm(held, x) if bias is None else torch.addmm(bias[:, None], held, x)

    @staticmethod
    def add_product(hidden: Tensor, held: Tensor, x: Tensor) -> None:
        hidden.addmm_(held, x)


class Rows:
    """See ``Order``."""

    features = 1

    @staticmethod
    def hold(weight: Tensor, packable: bool = True) -> Tensor:
        return weight.t()

    @staticmethod
    def lay(rows: Tensor) -> Tensor:
        return rows.contiguous()

    @staticmethod
    def as_rows(x: Tensor) -> Tensor:
        return x.contiguous()

    @staticmethod
    def split_heads(x: Tensor, size: int) -> Tensor:
        heads = x.shape[1] // size
        return x.view(-1, heads, size).transpose(0, 1).contiguous()

    @staticmethod
    def join_heads(heads: Tensor) -> Tensor:
        return heads.transpose(0, 1).reshape(heads.shape[1], -1)

    @staticmethod
    def mean(x: Tensor, share: Tensor, floor: Tensor) -> Tensor:
        return torch.addmm(floor, x, share)

    @staticmethod
    def product(held: Tensor, x: Tensor, bias: Tensor | None) -> Tensor:
        return torch.mm(x, held) if bias is None else torch.addmm(bias, x, held)

    @staticmethod
    def add_product(hidden: Tensor, held: Tensor, x: Tensor) -> None:
        hidden.addmm_(x, held)


class Packed(Rows):
    """See ``Order``. oneDNN also takes a plain weight [out, in], where it may not be replaced."""

    @staticmethod
    def hold(weight: Tensor, packable: bool = True) -> Tensor:
        if _small(weight):
            return weight.t()
        return torch.ops.mkldnn._reorder_linear_weight(weight, 8) if packable else weight

    @staticmethod
    def product(held: Tensor, x: Tensor, bias: Tensor | None) -> Tensor:
        return Rows.product(held, x, bias) if _small(held) else _one_dnn(held, x, bias)

    @staticmethod
    def add_product(hidden: Tensor, held: Tensor, x: Tensor) -> None:
        if _small(held):
            Rows.add_product(hidden, held, x)
        else:
            hidden.add_(_one_dnn(held, x, None))


def _small(weight: Tensor) -> bool:
    return weight.numel() < WORTH_PACKING or weight.dtype != torch.float32


def _one_dnn(held: Tensor, x: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, held, bias, "none", [], "")


@cache
def order() -> Order:
    """The fastest here, for a few rows in fp32."""
    seconds = {kind: _seconds(kind) for kind in (Rows, Columns, *_with_one_dnn())}
    best = min(seconds, key=seconds.get)
    return best if CLEARLY * seconds[best] < seconds[Rows] else Rows


def _with_one_dnn() -> tuple[Order, ...]:
    ops = torch.ops.mkldnn
    there = hasattr(ops, "_linear_pointwise") and hasattr(ops, "_reorder_linear_weight")
    return (Packed,) if there and torch.backends.mkldnn.is_available() else ()


def _seconds(kind: Order) -> float:
    """Of one product, the best of several: what is left when nothing disturbs."""
    held, x = kind.hold(torch.ones(2048, 384)), kind.lay(torch.ones(8, 384))
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        kind.product(held, x, None)
        best = min(best, time.perf_counter() - began)
    return best
