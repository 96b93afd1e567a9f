"""The bench of cut heads: every size writes the same texts, and the table shows what each saves and loses."""

import pytest
import torch

from engine.bench.suite import Plan
from engine.methods.shared.vocabulary_part import Vocabulary
from presets import family

vocabtrim = pytest.importorskip("engine.methods.vocabtrim.vocabtrim_suite")


def test_a_small_bench(monkeypatch, tmp_path):
    monkeypatch.setattr(vocabtrim, "QUICK", Plan(prompts=2, rounds=1, tokens=12))
    monkeypatch.setattr(vocabtrim, "QUICK_SHARES", (1.0, 0.05))
    Vocabulary.counted(torch.arange(4096).flip(0)).save(tmp_path / "vocabulary", None)
    paths = family().with_parts({"vocabulary": str(tmp_path / "vocabulary")})
    prompts = ["Once upon a time", "The dog"]
    cards = [{"id": prompt, "prompt": prompt} for prompt in prompts]
    report = vocabtrim.measure(paths, {"story": cards}, True)
    whole, cut = report.data
    assert [row["texts"] for row in report.data] == [2, 2]
    assert (whole["tokens"], cut["tokens"]) == (4096, 205)
    assert cut["kilobytes"] == pytest.approx(0.05 * whole["kilobytes"], rel=0.01)
    assert whole["missing"] == 0 < cut["missing"] < 1
    assert 1 <= cut["tokens_per_step"] < whole["tokens_per_step"]
    assert "4 of 4 texts written alike" in report.text
    lost = 1 - cut["tokens_per_step"] / whole["tokens_per_step"]
    assert f"{lost:.1%}" in report.text and "95%" in report.text
