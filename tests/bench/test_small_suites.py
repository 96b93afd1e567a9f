"""Suites of one subject at a small size: what is counted, and what the table says of it."""

import json
import math

import pytest
import torch
from jsonschema import Draft202012Validator

from engine.bench import devices_suite as devices
from engine.bench import reasoning_suite as reasoning
from engine.bench import schema_suite
from engine.bench.feature_schemas import FEATURES
from engine.bench.suite import Plan
from engine.chat.schema_check import checked
from engine.fast.cpu import store
from engine.methods import drafters
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.loading import load_models
from engine.training.generators import is_held_out
from presets import family
from presets.listed import prompts as workload
from tests.frugal import none_opened

pytestmark = pytest.mark.usefixtures("few_graphs")


def cards(*prompts: str) -> list[dict]:
    return [{"id": prompt, "prompt": prompt} for prompt in prompts]


def test_the_same_text_is_written_without_a_device(tiny_paths):
    """A row for each device, and models that are as they were. The suite puts all opened models away, so that each case
    opens its own; those of other tests come back."""
    joins, plan = store.join_products, Plan(prompts=1, rounds=1, tokens=4)
    asked = [drafters()["none"]], ["joined products", "nothing"]
    with none_opened():
        rows = devices.measured(tiny_paths, {"story": cards("a b c")}, *asked, plan)
    assert [row["device"] for row in rows] == asked[1]
    assert all(row["none"] > 0 for row in rows) and store.join_products is joins


@pytest.mark.exhaustive
def test_every_contestant_at_every_load(monkeypatch):
    load = pytest.importorskip("engine.methods.smartspec.load_suite")
    values = {"TOKENS": 8, "WARM_UP": 2, "FIXED": (2,), "QUEUE": 2, "QUICK_LOADS": (1, 3)}
    for name, value in values.items():
        monkeypatch.setattr(load, name, value)
    report = load.measure(family(), {"story": cards("Once upon a time", "The dog")}, True)
    rows = report.data["rows"]
    assert [(row["texts"], row["written"], row["equal"]) for row in rows] == [(1, 3, 3), (3, 9, 9)]
    for row in rows:
        assert list(row["speeds"]) == ["none", "chain 2", "smartspec"]
        best = max(row["speeds"]["none"], row["speeds"]["chain 2"])
        assert row["ratio"] == row["speeds"]["smartspec"] / best
    least = min(row["ratio"] for row in rows)
    assert f"{'met' if least >= load.LEAST else 'missed'}: 0.97" in report.text
    assert "12 of 12 texts written alike" in report.text


def test_of_weighed_texts_few_tokens_are_tested(monkeypatch):
    particles = pytest.importorskip("engine.methods.awrs.particles_suite")
    monkeypatch.setattr(particles, "QUICK", Plan(prompts=1, rounds=2, tokens=40))
    monkeypatch.setattr(particles, "QUICK_COUNTS", (2,))
    report = particles.measure(family(), {"template": workload("template")}, True)
    assert [row["texts"] for row in report.data] == [2] * 4
    assert all(0 < row["share"] <= 0.12 for row in report.data)
    plain, drafted = (
        [row["passes"] for row in report.data if row["drawn_by"] == drawn]
        for drawn in ("target", "draft")
    )
    assert all(fewer <= most / 2 for fewer, most in zip(drafted, plain, strict=True))
    assert "scatter" in report.text


def test_worked_sums_for_at_least_as_many_tokens(monkeypatch):
    sums = pytest.importorskip("engine.methods.a_star.sums_suite")
    monkeypatch.setattr(sums, "QUICK_SUMS", 2)
    report = sums.measure(family(), {}, True)
    greedy, one, best, searched = report.data
    assert greedy["temperature"] == 0 and one["temperature"] == best["temperature"] > 0
    assert best["name"] == f"best of {math.ceil(searched['tokens'] / one['tokens'])}"
    assert all(0 <= row["solved"] <= 1 < row["tokens"] for row in report.data)


def test_what_a_lossy_rule_of_pictures_costs_and_saves(monkeypatch):
    pictures = pytest.importorskip("engine.methods.sjd.pictures_suite")
    plain, _, _, exact, *_, grouped = pictures.WAYS
    monkeypatch.setattr(pictures, "WAYS", [plain, exact, grouped])
    monkeypatch.setattr(pictures, "QUICK_DIGITS", "3")
    report = pictures.measure(family("image"), {}, True)
    plain, exact, grouped = report.data
    assert plain["tokens"] == plain["passes"] and plain["price"] is None
    assert exact["tokens"] / exact["passes"] >= 1.5 and exact["price"] is None
    assert grouped["price"] > 0
    assert f"{grouped['price']:.3f}" in report.text and "sjd / gsd (window 16" in report.text


def test_the_nats_of_a_picture_are_those_of_the_target():
    pictures = pytest.importorskip("engine.methods.sjd.pictures_suite")
    models = load_models(family("image"), {})
    target = models.target
    text, found = target.tokenizer("5")["input_ids"], []
    steps = list(pictures.drawing(models, "none", {}, "rejection", {}).steps(text, 6))
    for step in steps:
        logits = target.session(len(text)).extend(text)
        found.append(float(logits.log_softmax(-1)[step.output[0]]))
        text = [*text, *step.output]
    assert [one for step in steps for one in pictures.logs(step)] == pytest.approx(found, abs=1e-4)


def test_every_contestants_steps_of_reasoning_are_judged(monkeypatch):
    drawn = reasoning.held_out_sums(3)
    assert len(drawn) == 3 * len(reasoning.KINDS)
    assert all(is_held_out(prompt) for prompt, _ in drawn)
    monkeypatch.setattr(reasoning, "held_out_sums", lambda count: drawn[:1])
    report = reasoning.measure(family(), {}, True)
    rows = {row["name"]: row for row in report.data}
    assert {row["sums"] for row in rows.values()} == {1}
    large, small = rows["large alone"], rows["small alone"]
    assert (large["small_tokens"], large["target_passes"]) == (0, large["tokens"])
    assert (small["small_tokens"], small["target_passes"]) == (small["tokens"], 0)
    lines = {line.split("  ")[0]: line.split() for line in report.text.splitlines()}
    for name, row in rows.items():
        assert [str(row["right"]), f"{row['right']:.0%}"] == lines[name][len(name.split()) :][:2]
    if "specreason" in drafters():
        helped = rows["specreason"]
        assert 0 < helped["small_tokens"] < helped["tokens"]
        assert helped["target_passes"] < helped["tokens"]


def test_every_feature_has_a_schema_that_can_be_kept():
    assert len(FEATURES) == 10
    for feature, schema in FEATURES.items():
        Draft202012Validator.check_schema(schema)
        checked(json.dumps(schema))
        word = {"arrays": "array", "unions": "anyOf", "refs": "$ref", "numbers": "minimum"}
        wanted = word.get(feature, feature)
        assert feature in ("nesting", "optional") or wanted in json.dumps(schema)


def test_forced_tokens_of_a_schema_take_no_pass_of_their_own(monkeypatch):
    few = {key: FEATURES[key] for key in ("const", "arrays")}
    monkeypatch.setattr(schema_suite, "FEATURES", few)
    report = schema_suite.measure(family(), {"template": workload("template")[1:2]}, True)
    const, arrays, whole = report.data
    assert const["forced"] > arrays["forced"] > 0.2
    assert whole["tokens"] == const["tokens"] + arrays["tokens"]
    for row in report.data:
        assert row["saved_plain"] >= 0.9 * row["forced"] > 0
        assert row["saved_chain"] > row["saved_plain"]
    assert "const" in report.text


def test_every_size_of_a_cut_head_writes_the_same_texts(monkeypatch, tmp_path):
    vocabtrim = pytest.importorskip("engine.methods.vocabtrim.vocabtrim_suite")
    monkeypatch.setattr(vocabtrim, "QUICK", Plan(prompts=2, rounds=1, tokens=12))
    monkeypatch.setattr(vocabtrim, "QUICK_SHARES", (1.0, 0.05))
    Vocabulary.counted(torch.arange(4096).flip(0)).save(tmp_path / "vocabulary", None)
    paths = family().with_parts({"vocabulary": str(tmp_path / "vocabulary")})
    report = vocabtrim.measure(paths, {"story": cards("Once upon a time", "The dog")}, True)
    whole, cut = report.data
    assert [row["texts"] for row in report.data] == [2, 2]
    assert (whole["tokens"], cut["tokens"]) == (4096, 205)
    assert cut["kilobytes"] == pytest.approx(0.05 * whole["kilobytes"], rel=0.01)
    assert whole["missing"] == 0 < cut["missing"] < 1
    assert 1 <= cut["tokens_per_step"] < whole["tokens_per_step"]
    assert "4 of 4 texts written alike" in report.text
    lost = 1 - cut["tokens_per_step"] / whole["tokens_per_step"]
    assert f"{lost:.1%}" in report.text and "95%" in report.text
