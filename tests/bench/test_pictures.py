"""The bench of pictures: what is counted, and what a lossy rule costs and saves."""

import pytest

from engine.parts.loading import load_models
from presets import family

pictures = pytest.importorskip("engine.methods.sjd.pictures_suite")


def test_a_small_bench(monkeypatch):
    plain, _, _, exact, *_, grouped = pictures.WAYS
    monkeypatch.setattr(pictures, "WAYS", [plain, exact, grouped])
    monkeypatch.setattr(pictures, "QUICK_DIGITS", "3")
    report = pictures.measure(family("image"), {}, True)
    plain, exact, grouped = report.data
    assert plain["tokens"] == plain["passes"] and plain["price"] is None
    assert exact["tokens"] / exact["passes"] >= 1.5 and exact["price"] is None
    assert grouped["price"] > 0
    assert f"{grouped['price']:.3f}" in report.text and "sjd / gsd (window 16" in report.text


def test_the_nats_are_those_of_the_target():
    models = load_models(family("image"), {})
    target = models.target
    text, found = target.tokenizer("5")["input_ids"], []
    steps = list(pictures.drawing(models, "none", {}, "rejection", {}).steps(text, 6))
    for step in steps:
        logits = target.session(len(text)).extend(text)
        found.append(float(logits.log_softmax(-1)[step.output[0]]))
        text = [*text, *step.output]
    assert [one for step in steps for one in pictures.logs(step)] == pytest.approx(found, abs=1e-4)
