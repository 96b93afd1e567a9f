"""The bench of weighed texts: few tokens are tested, and as many sets are made as were asked for."""

from engine.bench.suite import Plan
from engine.methods.awrs import particles_suite
from presets import family
from presets.listed import prompts as workload


def test_a_small_bench(monkeypatch):
    monkeypatch.setattr(particles_suite, "QUICK", Plan(prompts=1, rounds=2, tokens=40))
    monkeypatch.setattr(particles_suite, "QUICK_COUNTS", (1, 2))
    report = particles_suite.measure(family(), {"template": workload("template")}, True)
    assert [row["texts"] for row in report.data] == [1, 2]
    assert all(0 < row["share"] <= 0.12 for row in report.data)
    assert "scatter" in report.text
