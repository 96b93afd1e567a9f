"""Tests of the statistics: false alarms are as frequent as stated, and planted biases are found."""

import numpy as np

from tests.statistics import p_value, power

LAW = {"a": 0.5, "b": 0.3, "c": 0.19, "d": 0.01, "never": 0.0}


def sample(law, size, seed):
    rng = np.random.default_rng(seed)
    return list(rng.choice(list(law), size=size, p=list(law.values())))


def test_false_alarms_come_as_often_as_stated():
    alarms = sum(p_value(sample(LAW, 500, seed), LAW) < 0.05 for seed in range(1000))
    assert 25 <= alarms <= 80  # 50 expected


def test_a_bias_is_found_as_often_as_power_says():
    biased = {"a": 0.55, "b": 0.33, "c": 0.11, "d": 0.01}
    stated = power(LAW, biased, 300, 0.01)
    found = np.mean([p_value(sample(biased, 300, seed), LAW) < 0.01 for seed in range(500)])
    assert 0.3 < stated < 0.99 and abs(found - stated) < 0.1


def test_an_impossible_outcome_is_never_excused():
    assert p_value(["a"] * 50 + ["never"], LAW) == 0
    assert p_value(["a"] * 50 + ["unknown"], LAW) == 0


def test_degenerate_laws():
    assert p_value(["a"] * 50, {"a": 1.0}) == 1
    assert power({"a": 1.0}, {"a": 1.0}, 50, 0.01) == 0
    assert p_value(["a", "b"], {"a": 0.5, "b": 0.5}) == 1  # too few to say anything
