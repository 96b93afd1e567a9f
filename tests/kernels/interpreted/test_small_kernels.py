"""kv_commit and truncation against their references."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.sampling import Sampling, distribution
from engine.fast.kernels.kv_commit import addresses_of, kv_commit_reference
from engine.fast.kernels.lang import runs_on
from tests.kernels.device import DEVICE, kv_commit_triton, truncated_triton

I32 = torch.int32


def committed(run, buffers, rows, start=3, count=None):
    copies = [buffer.clone() for buffer in buffers]
    start = torch.tensor([start] * len(rows), dtype=I32)
    count = torch.tensor(count or [len(row) for row in rows], dtype=I32)
    run(copies, start, torch.tensor(rows, dtype=I32), count)
    return copies


@settings(max_examples=8, deadline=None)
@given(
    st.sets(st.integers(0, 24), min_size=1),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    st.sampled_from([8, 24]),
    st.booleans(),
)
def test_commit(rows, dtype, head, by_columns):
    buffers = [torch.randn(1, 2, 30, head).to(dtype) for _ in range(4)]
    if by_columns:
        buffers = [b.transpose(1, 2).contiguous().transpose(1, 2) for b in buffers]
    rows = [sorted(rows)]
    found = committed(kv_commit_triton, buffers, rows)
    expected = committed(kv_commit_reference, buffers, rows)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_commit_of_two_sequences_one_of_which_keeps_nothing():
    buffers = [torch.randn(2, 1, 20, 8) for _ in range(2)]
    rows, count = [[0, 2, 5], [1, 2, 3]], [3, 0]
    found = committed(kv_commit_triton, buffers, rows, count=count)
    expected = committed(kv_commit_reference, buffers, rows, count=count)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.equal(found[0][1], buffers[0][1])


def test_commit_with_a_planted_fault():
    buffers = [torch.randn(1, 1, 20, 8)]
    expected = committed(kv_commit_reference, buffers, [[1, 3, 4]])
    found = committed(kv_commit_triton, buffers, [[1, 3, 5]])
    assert not torch.equal(found[0], expected[0])


def test_commit_refuses_buffers_that_differ():
    with pytest.raises(ValueError, match="shape"):
        addresses_of([torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 16)])


def test_a_launch_that_succeeds_is_seen():
    assert runs_on(DEVICE)


CUTS = [
    Sampling(0.7, top_k=5),
    Sampling(1.0, top_p=0.6),
    Sampling(1.3, top_k=20, top_p=0.8),
    Sampling(1.0, top_k=1),
    Sampling(2.0, top_p=0.999),
]


@pytest.mark.parametrize("levels", [3, 10**6])
@pytest.mark.parametrize("sampling", CUTS, ids=str)
def test_truncation(sampling, levels):
    """Also with many equal logits (few levels), and with an impossible token.

    Of equal logits at the edge any may be kept: torch's topk on the host does not specify which.
    """
    torch.manual_seed(0)
    logits = torch.randint(levels, (5, 41)) * (4 / levels)
    logits[1, 7] = float("-inf")
    found = truncated_triton(logits, sampling, block=16)
    expected = distribution(logits, sampling)
    torch.testing.assert_close(found.sort(-1).values, expected.sort(-1).values)
    least = logits.masked_fill(found == 0, float("inf")).min(-1, keepdim=True).values
    assert ((found > 0) | (logits <= least)).all()  # nothing likelier was cut
    if levels > 3:
        assert torch.equal(found > 0, expected > 0)
        torch.testing.assert_close(found, expected)
    other = truncated_triton(logits.roll(1, 0), sampling, block=16)  # a planted fault
    assert not torch.equal(other > 0, expected > 0)


def test_truncation_of_parts_of_rows_and_of_nan():
    logits = torch.randn(4, 60)[:, :41]
    logits[2, 40] = float("nan")
    found = truncated_triton(logits, CUTS[2], block=16)
    torch.testing.assert_close(found, distribution(logits, CUTS[2]), equal_nan=True)
    assert found[2].isnan().all()
