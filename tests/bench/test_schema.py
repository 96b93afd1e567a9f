"""The bench of the schema: half of a record is forced, and forced tokens cost no step."""

from engine.bench.schema_suite import measure
from presets import family
from presets.listed import prompts as workload


def test_a_small_bench():
    report = measure(family(), {"template": workload("template")[1:4:2]}, True)
    free, held, *_ = report.data
    assert free["tokens_a_step"] == 1 and not free["forced"]
    assert held["tokens_a_step"] >= 1.5 and free["tokens"] <= held["tokens"]
    assert held["forced"] >= 0.4 * held["tokens"]
    assert "none: " in report.text
    assert [row["schema"] for row in report.data] == [False, True] * 2
