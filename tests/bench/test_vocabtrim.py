"""The bench of cut heads: every size writes the same texts, and the table shows what each saves and loses."""

import json

import pytest
import torch

from engine.bench import vocabtrim
from engine.methods.shared.vocabulary_part import Vocabulary
from presets import family


def test_a_small_bench(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(vocabtrim, "TOKENS", 12)
    Vocabulary.counted(torch.arange(4096).flip(0)).save(tmp_path / "vocabulary", None)
    paths = family().with_parts({"vocabulary": str(tmp_path / "vocabulary")})
    out = tmp_path / "sizes.json"
    rows = vocabtrim.run_vocabtrim(paths, ["Once upon a time", "The dog"], (1.0, 0.05), str(out))
    whole, cut = rows
    assert [row.texts for row in rows] == [2, 2]
    assert (whole.tokens, cut.tokens) == (4096, 205)
    assert cut.kilobytes == pytest.approx(0.05 * whole.kilobytes, rel=0.01)
    assert whole.missing == 0 < cut.missing < 1
    assert 1 <= cut.tokens_per_step < whole.tokens_per_step
    told = capsys.readouterr().out
    assert "4 of 4 texts written alike" in told
    lost = 1 - cut.tokens_per_step / whole.tokens_per_step
    assert f"{lost:.1%}" in told and "95%" in told
    assert [row["tokens"] for row in json.loads(out.read_text("utf-8"))] == [4096, 205]
