"""The bench of rules counts what runs with the same rules and seeds write."""

import statistics

import pytest

from engine.bench import rules_suite
from engine.bench.suite import Plan
from presets import family
from presets.listed import prompts as workload
from tests.engine.family import trace_of


def test_a_small_bench(monkeypatch):
    monkeypatch.setattr(rules_suite, "QUICK", Plan(prompts=1, rounds=2, tokens=16))
    report = rules_suite.measure(family(), {"story": workload("story")[:1]}, True)
    entries = [entry for group in rules_suite.GROUPS for entry in group]
    assert [(row["drafter"], row["rule"]) for row in report.data] == [(e.drafter, e.rule) for e in entries]  # fmt: skip
    rates = {}
    for entry in entries[:2]:
        runs = [
            trace_of(
                workload("story")[0]["prompt"],
                drafter=entry.drafter, options=entry.options, verifier=entry.rule, temperature=1.0,
                seed=seed, max_new_tokens=16,
            ).summary
            for seed in range(2)
        ]  # fmt: skip
        rates[entry.rule] = [run["new_tokens"] / run["steps"] for run in runs]
    rejection, block = report.data[:2]
    assert block["rate"] == pytest.approx(statistics.mean(rates["block"]))
    more = [one - other for one, other in zip(*reversed(rates.values()), strict=True)]
    base = statistics.mean(rates["rejection"])
    assert block["gain"] == pytest.approx(statistics.mean(more) / base)
    assert block["gain_error"] == pytest.approx(abs(more[0] - more[1]) / 2 / base)
    assert rejection["gain"] is None and rejection["rate"] == pytest.approx(base)
