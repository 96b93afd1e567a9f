"""Products of the same rows with several matrices, joined in a graph."""

import pytest
import torch
from torch import nn

from engine.fast.cpu import store
from engine.fast.cpu.core_count import settings
from engine.fast.cpu.joining import join_products
from engine.fast.cpu.runtime import core


class Products(nn.Module):
    """Three linear maps of the same rows, one with a bias, and one of other rows."""

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
    """converted(graph, rows): the graph as OpenVINO reads it, with all its products."""
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
