"""The reference kernels against the engine and torch on the CPU, and the arrays that kernels read."""

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fast.gpu.static_attention import KernelRowMask
from engine.fast.kernels.bits import pack, unpack
from engine.fast.kernels.kv_commit import kv_commit
from engine.fast.kernels.tree_attention import tree_attention, visible
from engine.fast.kernels.verify_tree import RULES, verify_tree
from tests.kernels.cases import attention_inputs, mask_of, peaked, same_verdict, with_random_q
from tests.trees import trees

SEEDS = st.integers(0, 2**31)
few = settings(max_examples=40, deadline=None)


@few
@given(SEEDS, st.integers(1, 5), st.integers(1, 70))
def test_bits_keep_the_mask(seed, rows, columns):
    seen = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < 0.5
    assert torch.equal(unpack(pack(seen), columns), seen)


@few
@given(trees(), st.integers(0, 9), SEEDS)
def test_attention_is_sdpa_with_the_dense_mask(tree, prefix, seed):
    torch.manual_seed(seed)
    mask = mask_of(tree, prefix)
    query, key, value = attention_inputs(mask, 4, 2, 8)
    end = prefix + mask.scratch
    expected = F.scaled_dot_product_attention(
        query, key[:, :, :end], value[:, :, :end], attn_mask=visible(mask), enable_gqa=True
    )
    torch.testing.assert_close(tree_attention(query, key, value, mask), expected)


@few
@given(trees(), st.integers(0, 9), st.integers(0, 3))
def test_bits_of_a_row_mask_are_its_dense_mask(tree, prefix, fed_before):
    seen = tree.ancestor_mask()
    fed_before = min(fed_before, len(seen) - 1)
    ancestors = [sum(1 << c for c in row.nonzero().flatten().tolist()) for row in seen]
    depths = [0, *tree.depths]
    mask = KernelRowMask(prefix, depths, ancestors[fed_before:], torch.device("cpu"))
    dense = mask.visible
    if dense is None:
        dense = torch.ones(len(seen) - fed_before, prefix + len(seen), dtype=torch.bool)
    assert torch.equal(visible(mask.bits), dense)
    near = mask.within(2)
    assert torch.equal(visible(mask.bits, window=2), dense if near is None else near)


@settings(max_examples=60, deadline=None)
@given(trees(), SEEDS, st.sampled_from(RULES))
def test_verdicts_are_the_engines(tree, seed, rule):
    torch.manual_seed(seed)
    same_verdict(verify_tree, rule, with_random_q(tree, 6), peaked(len(tree) + 1, 6), seed)


def test_commit_moves_only_what_is_kept():
    cache = torch.arange(12.0).view(1, 1, 12, 1).clone()
    start, rows = torch.tensor([4]), torch.tensor([[1, 2, 5, 0]])
    kv_commit([cache], start, rows, torch.tensor([3]))
    assert cache.flatten().tolist() == [0, 1, 2, 3, 5, 6, 9, 7, 8, 9, 10, 11]
