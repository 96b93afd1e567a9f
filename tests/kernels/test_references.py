"""The reference kernels against the engine and torch on the CPU, and the arrays that kernels read."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafters.prompt_lookup import NgramIndex
from engine.gpu.attention import KernelRowMask
from engine.kernels.bits import pack, unpack
from engine.kernels.gumbel_topk import gumbel_topk
from engine.kernels.head_topk import head_topk
from engine.kernels.kv_commit import kv_commit
from engine.kernels.ngram_match import ngram_match
from engine.kernels.philox import exponential
from engine.kernels.tree_attention import tree_attention, visible
from engine.kernels.verify_tree import RULES, verify_tree
from engine.sampling import Sampling, distribution
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


@few
@given(st.lists(st.integers(0, 2), min_size=1, max_size=25), st.integers(1, 4))
def test_ngram_is_prompt_lookup(text, shortest):
    index = NgramIndex(shortest, 5)
    index.read(text)
    context = torch.tensor([text + [9] * 3], dtype=torch.int32)
    length = torch.tensor([len(text)], dtype=torch.int32)
    match, tokens = ngram_match(context, length, shortest, 5, 4)
    expected = index.latest(text)
    assert tuple(match[0].tolist()) == (expected or (-1, 0))
    copied = text[expected[0] : expected[0] + 4] if expected else []
    assert tokens[0].tolist() == copied + [-1] * (4 - len(copied))


@pytest.mark.parametrize(
    "settings_of", [(1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.6), (1.0, 20, 0.8)]
)
def test_the_race_truncates_as_sampling_does(settings_of):
    torch.manual_seed(0)
    logits = torch.randn(4, 50) * 2
    temperature, top_k, top_p = settings_of
    drawn = gumbel_topk(logits, 3, temperature, top_k, top_p, want_q=True)
    expected = distribution(logits, Sampling(temperature, top_k, top_p))
    torch.testing.assert_close(drawn.q, expected)
    tokens = drawn.tokens.long()
    probabilities = expected.gather(1, tokens.clamp(min=0)).masked_fill(tokens < 0, 0.0)
    torch.testing.assert_close(drawn.probabilities, probabilities)
    held = (expected > 0).sum(-1).clamp(max=3).tolist()  # a nucleus may hold fewer than 3
    assert [len(set(row) - {-1}) for row in tokens.tolist()] == held


def test_philox_noise_is_exponential():
    noise = exponential(5, 20, 1000)
    assert abs(float(noise.mean()) - 1) < 0.03
    assert abs(float(noise.var()) - 1) < 0.08
    assert not torch.equal(noise, exponential(6, 20, 1000))


def test_first_draw_follows_the_distribution():
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(20000, 3)
    drawn = gumbel_topk(logits, 3, seed=1).tokens
    share = drawn[:, 0].bincount(minlength=3) / 20000
    torch.testing.assert_close(share, logits[0].softmax(-1), atol=0.015, rtol=0)


def test_a_trimmed_head_names_its_tokens():
    torch.manual_seed(0)
    hidden, weight, ids = torch.randn(3, 8), torch.randn(20, 8), torch.randperm(90)[:20]
    values, tokens, log_mass = head_topk(hidden, weight, 4, ids)
    logits = hidden @ weight.T
    expected = logits.topk(4)
    torch.testing.assert_close(values, expected.values)
    assert torch.equal(tokens.long(), ids[expected.indices])
    torch.testing.assert_close(log_mass, logits.logsumexp(-1))


def test_commit_moves_only_what_is_kept():
    cache = torch.arange(12.0).view(1, 1, 12, 1).clone()
    start, rows = torch.tensor([4]), torch.tensor([[1, 2, 5, 0]])
    kv_commit([cache], start, rows, torch.tensor([3]))
    assert cache.flatten().tolist() == [0, 1, 2, 3, 5, 6, 9, 7, 8, 9, 10, 11]
