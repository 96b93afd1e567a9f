"""The bench of pictures: what is counted, and what a lossy rule costs and saves."""

import json

import pytest

from engine.bench import pictures
from engine.parts.loading import load_models
from presets import family


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    chosen = [one for one in pictures.CONTESTANTS if one[0] != "jacobi"][::2]
    monkeypatch.setattr(pictures, "CONTESTANTS", [*chosen[:2], chosen[-1]])
    monkeypatch.setattr(pictures, "DIGITS", "3")
    out = tmp_path / "pictures.json"
    pictures.pictures(family("image"), {}, True, str(out))
    plain, exact, grouped = json.loads(out.read_text("utf-8"))
    assert plain["tokens"] == plain["passes"] and plain["price"] is None
    assert exact["tokens"] / exact["passes"] >= 1.5 and exact["price"] is None
    assert grouped["price"] > 0
    told = capsys.readouterr().out
    assert f"{grouped['price']:.3f}" in told and "sjd / gsd (window 16" in told


def test_the_nats_are_those_of_the_target():
    target = load_models(family("image"), {}).target
    steps = pictures.drawn(target, "none", {}, pictures.verifier("rejection"), "5")[:6]
    text, found = target.tokenizer("5")["input_ids"], []
    for step in steps:
        logits = target.session(len(text)).extend(text)
        found.append(float(logits.log_softmax(-1)[step.output[0]]))
        text = [*text, *step.output]
    assert [one for step in steps for one in pictures.logs(step)] == pytest.approx(found, abs=1e-4)
