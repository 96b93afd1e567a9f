"""tree_attention against its reference: shapes, strides, dtypes, and the options that layers may set."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fast.kernels.attention_plan import Plan
from engine.fast.kernels.bits import AncestorBits, pack
from engine.fast.kernels.tree_attention import tree_attention_reference
from tests.kernels.cases import attention_inputs, mask_of
from tests.kernels.device import tree_attention_triton
from tests.trees import trees

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3}


def agree(inputs, mask, cut=None, kernel_mask=None, **special):
    found = tree_attention_triton(*inputs, kernel_mask or mask, cut=cut, **special)
    expected = tree_attention_reference(*inputs, mask, **special)
    tolerance = TOLERANCE[inputs[0].dtype]
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


@settings(max_examples=8, deadline=None)
@given(
    tree=trees(most_draws=9),
    prefix=st.integers(0, 70),
    heads=st.sampled_from([(1, 1), (4, 2), (3, 1)]),
    head=st.sampled_from([16, 24, 64]),
    dtype=st.sampled_from([torch.float32, torch.float16]),
    seed=st.integers(0, 999),
)
def test_random_trees(tree, prefix, heads, head, dtype, seed):
    torch.manual_seed(seed)
    mask = mask_of(tree, prefix)
    inputs = attention_inputs(mask, *heads, head, dtype)
    agree(inputs, mask, Plan(16, 16, min(prefix, 2), 4, 2))


@settings(max_examples=5, deadline=None)
@given(trees(most_draws=9), st.integers(0, 50), st.integers(1, 40), st.integers(0, 999))
def test_window_cap_and_sinks(tree, prefix, window, seed):
    torch.manual_seed(seed)
    mask = mask_of(tree, prefix)
    inputs = attention_inputs(mask, 4, 2, 16)
    cut = Plan(16, 16, min(prefix, 2), 4, 2)
    agree(inputs, mask, cut, window=window, softcap=3.0, sinks=torch.randn(4), scale=0.5)


def test_more_rows_than_a_word_of_bits_and_than_a_block():
    torch.manual_seed(0)
    seen = torch.rand(40, 70) < 0.3
    mask = AncestorBits.of(seen, torch.randint(0, 9, (70,)), 33)
    agree(attention_inputs(mask, 2, 1, 16), mask, Plan(32, 32, 1, 4, 2))


def test_own_plan_and_long_prefix():
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.ones(1, 1, dtype=torch.bool), torch.zeros(1), 700)
    agree(attention_inputs(mask, 4, 4, 32, torch.float16), mask)


def test_as_many_rows_as_there_may_be():
    """256 rows that see one another at random, under the plan that a GPU would use."""
    torch.manual_seed(0)
    seen = torch.rand(256, 256) < 0.1
    mask = AncestorBits.of(seen, torch.randint(0, 9, (256,)), 65)
    agree(attention_inputs(mask, 2, 2, 64, torch.float16), mask)


def test_a_prefix_of_32k():
    """The prefix is split as on a GPU; the last part is not a full one."""
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.ones(3, 3, dtype=torch.bool).tril(), torch.arange(3), 32700)
    agree(attention_inputs(mask, 4, 1, 64, torch.float16), mask)


@pytest.mark.parametrize(
    ("head", "dtype"),
    [(128, torch.float16), (256, torch.float16), (256, torch.float32), (80, torch.float32)],
)
def test_heads_of_real_models(head, dtype):
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.ones(5, 5, dtype=torch.bool).tril(), torch.arange(5), 70)
    agree(attention_inputs(mask, 4, 2, head, dtype), mask)


def test_sequences_of_different_lengths():
    torch.manual_seed(0)
    seen = torch.rand(2, 3, 5) < 0.5
    depths = torch.randint(0, 4, (2, 5), dtype=torch.int32)
    prefix = torch.tensor([0, 37], dtype=torch.int32)
    mask = AncestorBits(pack(seen), depths, prefix, 37)
    agree(attention_inputs(mask, 2, 1, 16), mask, Plan(16, 16, 2, 4, 2))


@pytest.mark.parametrize("head", [64, 96])
def test_heads_multiplied_a_few_dimensions_at_a_time(head):
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.ones(3, 3, dtype=torch.bool).tril(), torch.arange(3), 40)
    agree(attention_inputs(mask, 4, 2, head), mask, Plan(16, 16, 2, 4, 2, chunk=32), softcap=3.0)


def test_rows_anywhere_among_the_scratch_rows():
    """A padded pass of a captured graph: rows 2 and 3 of 32, most of which are unused."""
    torch.manual_seed(0)
    seen = torch.zeros(2, 32, dtype=torch.bool)
    seen[0, [0, 2]] = seen[1, [0, 1, 3]] = True
    depths = torch.zeros(32, dtype=torch.int32)
    depths[:4] = torch.tensor([0, 1, 1, 2])
    mask = AncestorBits(pack(seen)[None], depths[None], torch.tensor([9]), 900, depths[None, 2:4])
    agree(attention_inputs(mask, 4, 2, 16), mask, window=10)


def test_rows_that_see_nothing_give_nothing():
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3), 0)
    inputs = attention_inputs(mask, 2, 1, 16)
    agree(inputs, mask)
    assert not tree_attention_triton(*inputs, mask).any()


def test_cache_laid_out_by_columns():
    torch.manual_seed(0)
    mask = AncestorBits.of(torch.ones(2, 2, dtype=torch.bool).tril(), torch.arange(2), 20)
    query, key, value = attention_inputs(mask, 4, 2, 16)
    key, value = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (key, value))
    agree((query, key, value), mask, Plan(16, 16, 1, 4, 2))


@pytest.mark.parametrize("fault", ["bit", "prefix", "depth"])
def test_a_planted_fault_is_seen(fault):
    torch.manual_seed(0)
    seen = torch.ones(4, 4, dtype=torch.bool).tril()
    right = AncestorBits.of(seen, torch.arange(4), 20)
    wrong_seen = seen.clone()
    wrong_seen[3, 1] = fault != "bit"
    depths = torch.arange(4) + (fault == "depth") * torch.tensor([0, 0, 0, 1])
    wrong = AncestorBits.of(wrong_seen, depths, 20 - (fault == "prefix"))
    inputs = attention_inputs(right, 2, 1, 16)
    cut = Plan(16, 16, 1, 4, 2)
    agree(inputs, right, cut, window=9)
    with pytest.raises(AssertionError):
        agree(inputs, right, cut, kernel_mask=wrong, window=9)
