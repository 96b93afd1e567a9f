"""The bench of the schema: half of a record is forced, and forced tokens cost no step."""

import json

from engine.bench.schema import run_schema
from presets import family
from presets.listed import prompts as workload


def test_a_small_bench(tmp_path, capsys):
    prompts = [card["prompt"] for card in workload("template")]
    out = tmp_path / "schema.json"
    free, held, *_ = run_schema(family(), prompts[1:4:2], str(out))
    assert free.tokens_a_step == 1 and not free.forced
    assert held.tokens_a_step >= 1.5
    assert held.forced >= 0.4 * held.tokens
    assert "none: " in capsys.readouterr().out
    assert [row["schema"] for row in json.loads(out.read_text("utf-8"))] == [False, True] * 2
