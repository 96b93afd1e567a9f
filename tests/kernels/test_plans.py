"""How attention is divided on each GPU: how full its tiles are, how often the prefix is read, and
how many programs there are. Arithmetic on the plan; nothing runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fast.gpu.inputs import ROWS
from engine.fast.gpu.kernel_calls import MOST_ROWS
from engine.fast.kernels.attention_plan import MOST_PARTS, places, plan
from engine.fast.kernels.hardware import HOPPER, KNOWN
from engine.model.session import PREFILL_ROWS

KV_HEADS, HEAD, BF16 = 8, 128, 2


def llama(rows: int, groups: int = 4, gpu=HOPPER, longest: int = 32768, pairs: int = KV_HEADS):
    return plan(rows, groups, pairs, HEAD, BF16, longest, gpu)


@pytest.mark.parametrize("groups", [4, 8])
@pytest.mark.parametrize("rows", ROWS)
def test_the_rows_of_a_pass_fill_its_tiles(rows, groups):
    """And the prefix is read no more often than tiles of 128 rows require."""
    cut, packed = llama(rows, groups), rows * groups
    assert cut.blocks(packed) * cut.block_rows == max(packed, 16)
    assert cut.blocks(packed) == max(1, packed // 128)


def test_the_root_is_not_what_costs_another_tile():
    """Before, the root came on top of a power of two: 64 nodes took five tiles of 64, each of which
    read the prefix."""
    reads = {nodes: llama(_size(1 + nodes)).blocks(4 * _size(1 + nodes)) for nodes in (7, 31, 63)}
    assert reads == {7: 1, 31: 1, 63: 2}
    assert llama(_size(65)).blocks(4 * _size(65)) == 3
    assert llama(65).blocks(4 * 65) == 5


def _size(count: int) -> int:
    return next(rows for rows in ROWS if rows >= count)


@pytest.mark.parametrize("architecture", sorted(KNOWN))
@pytest.mark.parametrize("rows", (*ROWS, 9, 17, 65, 256))
def test_all_programs_run_at_the_same_time(rows, architecture):
    """Including the tree's. The prefix has at least one part, so a pass of many rows may need more places."""
    gpu = KNOWN[architecture]
    cut = llama(rows, gpu=gpu)
    programs = cut.blocks(4 * rows) * KV_HEADS * (cut.splits + 1)
    assert programs <= places(cut.warps, gpu) or cut.splits == 1


def test_eight_nodes_fill_a_hopper_and_no_more():
    """Before, 33 parts of the prefix and the tree made 272 programs for 264 places."""
    cut = llama(9)
    assert (cut.splits + 1) * KV_HEADS == 264 == places(cut.warps, HOPPER)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 512),
    st.sampled_from([1, 3, 4, 7, 8, 16]),
    st.integers(1, 64),
    st.sampled_from([64, 80, 128, 256]),
    st.sampled_from([2, 4]),
    st.integers(0, 131072),
    st.sampled_from(sorted(KNOWN)),
)
def test_plans_fit_the_gpu(rows, groups, pairs, head, element, longest, architecture):
    gpu = KNOWN[architecture]
    cut = plan(rows, groups, pairs, head, element, longest, gpu)
    assert 16 <= cut.block_rows <= 128
    assert 0 <= cut.splits < MOST_PARTS
    assert (cut.splits == 0) == (longest == 0)
    tiles = (2 * cut.stages * cut.block_columns + cut.block_rows) * max(head, 16) * element
    assert tiles <= gpu.shared


def test_the_kernel_takes_every_pass_of_a_prompt():
    assert PREFILL_ROWS <= MOST_ROWS
