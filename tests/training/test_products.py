"""Products of half-precision matrices, and a training step made of them."""

from __future__ import annotations

import pytest
import torch

from engine.training import products
from engine.training.chunked_loss import ChunkedLoss, likely
from engine.training.functional_llama import Shape, hidden_states, rotation
from engine.training.new_models import target_config
from engine.training.optim import orthogonalize

needs_mkl = pytest.mark.skipif(products.library() is None, reason="MKL is not installed")


@needs_mkl
@pytest.mark.parametrize("shapes", [((7, 5), (5, 3)), ((64, 300), (300, 17)), ((1, 9), (9, 1))])
@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
def test_halves_are_multiplied_in_any_order_of_memory(shapes, turned_a, turned_b):
    torch.manual_seed(0)
    a, b = (torch.randn(shape).half() for shape in shapes)
    laid_a = a.T.contiguous().T if turned_a else a
    laid_b = b.T.contiguous().T if turned_b else b
    expected = a.float() @ b.float()
    error = (products.product(laid_a, laid_b).float() - expected).abs().max()
    assert error < 0.02 * expected.abs().max()


@needs_mkl
def test_halves_among_other_columns():
    wide = torch.randn(6, 40).half()
    ones = torch.ones(16, 2)
    expected = wide[:, 8:24].float() @ ones
    got = products.product(wide[:, 8:24], ones.half())
    torch.testing.assert_close(got.float(), expected, atol=0.05, rtol=0.01)


@needs_mkl
def test_halves_make_singular_values_near_one():
    torch.manual_seed(0)
    singular = torch.linalg.svdvals(orthogonalize(torch.randn(2, 48, 24).half(), steps=8).float())
    assert (singular > 0.6).all()
    assert (singular < 1.3).all()


def gradients(dtype: torch.dtype, scale: float) -> list[torch.Tensor]:
    config = target_config(
        256,
        0,
        2,
        hidden_size=64,
        intermediate_size=96,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
    )
    shape = Shape.of(config)
    torch.manual_seed(0)
    flat = torch.randn(shape.size()) * 0.05
    leaves = [t.detach().to(dtype).requires_grad_() for t in shape.leaves(flat)]
    tokens = torch.randint(0, 256, (4, 64))
    hidden = hidden_states(leaves, tokens, *rotation(shape, 64, dtype), shape)
    weights = torch.full((4 * 64,), scale / (4 * 64))
    ChunkedLoss.apply(
        likely, hidden.flatten(0, 1), leaves[0], tokens.roll(-1, 1).flatten(), weights
    ).backward()
    return [leaf.grad.float() / scale for leaf in leaves]


@needs_mkl
def test_gradients_of_halves_point_where_those_of_float32_do():
    exact, halves = gradients(torch.float32, 1.0), gradients(torch.float16, 4096.0)
    for a, b in zip(exact, halves, strict=True):
        assert torch.cosine_similarity(a.flatten(), b.flatten(), 0) > 0.999
        assert b.norm() == pytest.approx(a.norm().item(), rel=0.01)
