"""The bench of the schema: forced tokens cost no step, and each feature forces its own share."""

import json

from jsonschema import Draft202012Validator

from engine.bench.feature_schemas import FEATURES
from engine.bench.schema_suite import measure
from engine.chat.schema_check import checked
from presets import family
from presets.listed import prompts as workload


def test_every_feature_has_a_schema_that_can_be_kept():
    assert len(FEATURES) == 10
    for feature, schema in FEATURES.items():
        Draft202012Validator.check_schema(schema)
        checked(json.dumps(schema))
        word = {"arrays": "array", "unions": "anyOf", "refs": "$ref", "numbers": "minimum"}
        wanted = word.get(feature, feature)
        assert feature in ("nesting", "optional") or wanted in json.dumps(schema)


def test_a_small_bench(monkeypatch):
    few = {key: FEATURES[key] for key in ("const", "arrays")}
    monkeypatch.setattr("engine.bench.schema_suite.FEATURES", few)
    report = measure(family(), {"template": workload("template")[1:2]}, True)
    const, arrays, whole = report.data
    assert const["forced"] > arrays["forced"] > 0.2
    assert whole["tokens"] == const["tokens"] + arrays["tokens"]
    for row in report.data:
        assert row["saved_plain"] >= 0.9 * row["forced"] > 0, (
            "a forced token takes no pass of its own"
        )
        assert row["saved_chain"] > row["saved_plain"]
    assert "const" in report.text
