"""The one operator from logits to a distribution, and the noise that belongs to a position."""

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import sampling as module
from engine.core.sampling import (
    Sampling,
    display_distribution,
    distribution,
    draw,
    pick,
    position_noise,
    stream,
    uniforms,
)
from engine.errors import UserError
from tests.statistics import p_value, power

many = settings(max_examples=80, deadline=None, derandomize=True)
FALSE_ALARM = 1e-6
SEED_COUNT = 6000


def naive(logits, temperature, top_k, top_p):
    """Plain Python: temperature, then top-k, then the smallest nucleus that reaches top_p."""
    scaled = [logit / temperature for logit in logits]
    if 0 < top_k < len(scaled):
        limit = sorted(scaled, reverse=True)[top_k - 1]
        scaled = [x if x >= limit else -math.inf for x in scaled]
    top = max(scaled)
    weights = [math.exp(x - top) for x in scaled]
    probs = [weight / sum(weights) for weight in weights]
    kept, mass = set(), 0.0
    for token in sorted(range(len(probs)), key=lambda token: -probs[token]):
        if mass >= top_p and top_p < 1:
            break
        kept.add(token)
        mass += probs[token]
    total = sum(probs[token] for token in kept)
    return [prob / total if token in kept else 0.0 for token, prob in enumerate(probs)]


@many
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 12),
    temperature=st.sampled_from([0.3, 0.7, 1.0, 2.5]),
    top_k=st.integers(0, 14),
    top_p=st.sampled_from([0.01, 0.35, 0.62, 0.93, 1.0]),
)
def test_against_a_naive_reference(seed, size, temperature, top_k, top_p):
    rng = random.Random(seed)
    logits = [rng.gauss(0, 2) for _ in range(size)]
    sampling = Sampling(temperature, top_k, top_p)
    got = distribution(torch.tensor(logits), sampling)
    expected = torch.tensor(naive(logits, temperature, top_k, top_p))
    assert torch.allclose(got, expected, atol=1e-6)
    assert abs(float(got.sum()) - 1) < 1e-6
    assert torch.equal(display_distribution(torch.tensor(logits), sampling), got)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0), Sampling(0.7, 5, 0.8)])
def test_rows_are_independent_of_their_company(sampling):
    """[B, N, V] at once gives the same as each row alone: p and q go through the same operator."""
    logits = torch.randn(2, 3, 11, generator=torch.Generator().manual_seed(0))
    together = distribution(logits, sampling)
    for b in range(2):
        for n in range(3):
            assert torch.allclose(together[b, n], distribution(logits[b, n], sampling), atol=1e-7)


def test_the_nucleus_keeps_at_least_one():
    got = distribution(torch.tensor([0.0, 9.0, 1.0]), Sampling(1.0, top_p=1e-9))
    assert got.tolist() == [0.0, 1.0, 0.0]


def test_the_nucleus_is_found_in_a_flat_distribution(monkeypatch):
    """If the first guess at its size is too small, the full sort is used."""
    logits = torch.randn(2, 500, generator=torch.Generator().manual_seed(1)) * 0.1
    logits[1] *= 80  # this row needs few tokens, the other needs many
    sampling = Sampling(1.0, top_p=0.9)
    guessed = distribution(logits, sampling)
    monkeypatch.setattr(module, "_NUCLEUS_GUESS", 500)
    assert torch.allclose(guessed, distribution(logits, sampling), atol=1e-7)
    assert int((guessed[0] > 0).sum()) > 256 > int((guessed[1] > 0).sum())


def test_temperature_zero():
    logits = torch.tensor([[1.0, 3.0, 3.0], [0.0, -1.0, -2.0]])
    got = distribution(logits, Sampling())
    assert got.dtype == torch.float32
    assert got.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert torch.equal(display_distribution(logits, Sampling()), logits.softmax(-1))
    assert Sampling().greedy and not Sampling(0.1).greedy


def test_low_precision_logits_are_widened_first():
    logits = torch.randn(50, generator=torch.Generator().manual_seed(2)).bfloat16()
    wide = distribution(logits.float(), Sampling(0.7, top_p=0.9))
    assert torch.equal(distribution(logits, Sampling(0.7, top_p=0.9)), wide)
    assert distribution(logits, Sampling()).dtype == torch.float32


def test_settings_out_of_range():
    wrong = [("temperature", one) for one in (-0.1, math.nan, math.inf)] + [("top_k", -1)]
    wrong += [("top_p", one) for one in (0.0, 1.1, math.nan)] + [("seed", -1), ("seed", 2**63)]
    for name, value in wrong:
        with pytest.raises(UserError):
            Sampling(**{name: value})


def test_noise_belongs_to_its_position():
    """A position has its own noise, whatever was drawn before and in whatever order."""
    first = {position: position_noise(7, position, 32) for position in range(20)}
    torch.manual_seed(123)
    torch.rand(5)
    for position in reversed(range(20)):
        assert torch.equal(position_noise(7, position, 32), first[position])
    others = [*first.values(), position_noise(8, 0, 32), position_noise(70, 0, 32)]
    assert len({tuple(noise.tolist()) for noise in others}) == len(others)
    numbers = torch.cat(others).tolist()
    assert len({*numbers}) == len(numbers), "no number belongs to two positions"
    for noise in others:
        assert bool((noise > 0).all()) and bool(noise.isfinite().all())


def test_noise_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    position_noise(1, 2, 100)
    stream(1, "verify")
    assert torch.equal(torch.rand(3), expected)


def test_streams_are_separate_and_repeat():
    names = [(seed, name) for seed in (0, 1) for name in ("draft", "verify")]
    values = {key: torch.rand(4, generator=stream(*key)).tolist() for key in names}
    assert len({tuple(v) for v in values.values()}) == 4
    assert torch.rand(4, generator=stream(0, "draft")).tolist() == values[0, "draft"]


def test_draws_follow_the_distribution():
    probs = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05, 0.0])
    law = {token: float(prob) for token, prob in enumerate(probs)}
    drawn = [draw(probs, position_noise(seed, 3, 6)) for seed in range(SEED_COUNT)]
    assert p_value(drawn, law) > FALSE_ALARM
    biased = {0: 0.45, 1: 0.3, 2: 0.13, 3: 0.08, 4: 0.04}
    assert power(law, biased, SEED_COUNT, FALSE_ALARM) > 0.99
    shifted = [draw(probs.roll(1), position_noise(seed, 3, 6)) for seed in range(SEED_COUNT)]
    assert p_value(shifted, law) < FALSE_ALARM


def test_draws_at_neighbouring_positions_and_seeds_are_independent():
    probs = torch.tensor([0.5, 0.3, 0.2])
    law = {(a, b): float(probs[a] * probs[b]) for a in range(3) for b in range(3)}
    tokens = [draw(probs, position_noise(0, place, 3)) for place in range(SEED_COUNT)]
    assert p_value(zip(tokens[::2], tokens[1::2], strict=True), law) > FALSE_ALARM
    tokens = [draw(probs, position_noise(seed, 0, 3)) for seed in range(SEED_COUNT)]
    assert p_value(zip(tokens[::2], tokens[1::2], strict=True), law) > FALSE_ALARM


def test_picks_share_the_uniforms_out_by_weight():
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 4.0, 0.0])
    drawn = (torch.arange(800, dtype=torch.float64) + 0.5) / 800
    picked = pick(weights.expand(800, -1), drawn)
    assert picked.bincount(minlength=6).tolist() == [0, 300, 0, 100, 400, 0]
    ends = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert pick(weights.expand(2, -1) / 7, ends).tolist() == [1, 4]
    assert int(pick(weights, ends[0])) == 1


def test_uniforms_are_the_same_one_by_one_or_together():
    together = uniforms(stream(3, "draft"), 5)
    generator = stream(3, "draft")
    assert torch.equal(together, torch.cat([uniforms(generator, n) for n in (1, 3, 1)]))


def test_an_impossible_token_is_never_drawn():
    probs = torch.zeros(4096)
    probs[17] = 1.0
    assert {draw(probs, position_noise(seed, 0, 4096)) for seed in range(50)} == {17}
    assert draw(probs.double(), position_noise(0, 0, 4096)) == 17


def test_a_draw_from_nan_stays_in_the_vocabulary():
    """An id beyond the vocabulary would end every run on a GPU, through an assert in the embedding."""
    weights = torch.full((2, 6), float("nan"))
    assert pick(weights, torch.tensor([0.0, 0.999], dtype=torch.float64)).tolist() == [5, 5]
