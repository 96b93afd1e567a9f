"""kv_commit, gumbel_topk, ngram_match and head_topk against their references."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.gumbel_topk import gumbel_topk_reference
from engine.kernels.head_topk import head_topk_reference
from engine.kernels.kv_commit import addresses_of, kv_commit_reference
from engine.kernels.lang import runs_on
from engine.kernels.ngram_match import ngram_match_reference
from engine.sampling import Sampling, distribution
from tests.kernels.device import (
    DEVICE,
    gumbel_topk_triton,
    head_topk_triton,
    kv_commit_triton,
    ngram_match_triton,
    truncated_triton,
)

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


RACES = [
    {},
    {"temperature": 0.0},
    {"temperature": 0.7, "top_k": 5},
    {"top_p": 0.6},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.8},
    {"top_k": 1},
]


@pytest.mark.parametrize("given_noise", [True, False])
@pytest.mark.parametrize("race", RACES, ids=str)
def test_race(race, given_noise):
    torch.manual_seed(0)
    logits, noise = torch.randn(2, 41) * 2, torch.empty(2, 41).exponential_()
    logits[1, 7] = float("-inf")
    options = race | {"noise": noise if given_noise else None, "seed": 1 << 40, "want_q": True}
    found = gumbel_topk_triton(logits, 3, block=32, **options)
    expected = gumbel_topk_reference(logits, 3, **options)
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.q, expected.q)
    torch.testing.assert_close(found.probabilities, expected.probabilities)


def test_race_keeps_equals_together_and_sees_a_planted_fault():
    logits = torch.tensor([[1.0, 2.0, 2.0, 0.0, 2.0]])
    found = gumbel_topk_triton(logits, 4, top_k=2, seed=3, want_q=True)
    assert (found.q > 0).tolist() == [[False, True, True, False, True]]
    assert sorted(found.tokens[0].tolist()) == [-1, 1, 2, 4]
    other = gumbel_topk_triton(logits, 4, top_k=4, seed=3, want_q=True)
    assert not torch.equal(found.q, other.q)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=40),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_ngram(text, shortest, longest, copy):
    context = torch.tensor([text + [1] * 2, text[::-1] + [0] * 2], dtype=I32)
    arguments = (torch.tensor([len(text), max(1, len(text) - 3)], dtype=I32), shortest, longest)
    found = ngram_match_triton(context, *arguments, copy, block=16)
    expected = ngram_match_reference(context, *arguments, copy)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_ngram_sees_a_planted_fault():
    text = torch.tensor([[1, 2, 3, 1, 2]], dtype=I32)
    right = ngram_match_reference(text, torch.tensor([5], dtype=I32), 1, 3, 2)
    wrong = ngram_match_triton(text, torch.tensor([4], dtype=I32), 1, 3, 2)
    assert not torch.equal(right[0], wrong[0])


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize(
    ("rows", "vocabulary", "width", "k", "dtype"),
    [(1, 17, 8, 1, torch.float32), (5, 150, 40, 6, torch.float32), (2, 130, 72, 3, torch.float16)],
)
def test_head(rows, vocabulary, width, k, dtype, trimmed):
    torch.manual_seed(0)
    hidden, weight = torch.randn(rows, width).to(dtype), torch.randn(vocabulary, width).to(dtype)
    weight[3] = weight[1]  # equal logits: the lower row comes first
    ids = torch.randperm(1000)[:vocabulary] if trimmed else None
    found = head_topk_triton(hidden, weight, k, ids)
    expected = head_topk_reference(hidden, weight, k, ids)
    torch.testing.assert_close(found[0], expected[0], atol=1e-4, rtol=1e-4)
    assert torch.equal(found[1], expected[1])
    torch.testing.assert_close(found[2], expected[2], atol=1e-4, rtol=1e-4)
    if rows > 1:  # a planted fault
        other = head_topk_triton(hidden.roll(1, 0), weight, k, ids)
        assert not torch.equal(other[1], expected[1])


def test_rows_that_are_parts_of_longer_ones():
    torch.manual_seed(0)
    wide, hidden, weight = torch.randn(3, 60), torch.randn(3, 24), torch.randn(40, 24)
    noise = torch.empty(3, 70).exponential_()
    options = {"top_k": 9, "noise": noise[:, :41], "want_q": True}
    found = gumbel_topk_triton(wide[:, :41], 3, block=32, **options)
    expected = gumbel_topk_reference(wide[:, :41], 3, **options)
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.q, expected.q)
    found = head_topk_triton(hidden[:, :16], weight[:, :16], 4)
    expected = head_topk_reference(hidden[:, :16], weight[:, :16], 4)
    assert torch.equal(found[1], expected[1])
    torch.testing.assert_close(found[0], expected[0], atol=1e-4, rtol=1e-4)


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
