"""The bench of weighed texts: few tokens are tested, and more texts scatter less."""

from engine.methods.awrs.particles_suite import measure
from presets import family
from presets.listed import prompts as workload


def test_a_small_bench():
    report = measure(family(), {"template": workload("template")}, True)
    one, four = report.data
    assert (one["texts"], four["texts"]) == (1, 4)
    assert all(0 < row["share"] <= 0.1 for row in report.data)
    assert "scatter" in report.text
