"""The bench of drafting from within: a figure for each that can take part, a sentence for each that cannot."""

import re
import shutil
from pathlib import Path

import pytest

from engine.bench import within_suite as within
from engine.bench.suite import Plan
from engine.methods.shared.prompt_tokens_part import PromptTokens
from engine.parts.digest import FIELD
from engine.parts.loading import ModelPaths, load_models
from presets import KINDS

eagle_layout = pytest.importorskip("engine.methods.shared.eagle_layout")
eagle_part = pytest.importorskip("engine.methods.eagle.part")


@pytest.fixture
def paths(quick, tiny_paths, tmp_path):
    """Return copies of the models."""
    folder = shutil.copytree(Path(tiny_paths.target).parent, tmp_path / "models")
    return ModelPaths(str(folder / "target"), {"draft": str(folder / "draft")})


@pytest.mark.exhaustive
def test_a_small_bench(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(within, "QUICK", Plan(prompts=1, rounds=1, tokens=12))
    target = load_models(paths, {}, "float32", "cpu").target
    PromptTokens.tiny(target).save(tmp_path / "ppd", {})
    cell = eagle_part.tiny_cell(target)
    for name, about in (("eagle", {}), ("gto", {}), ("fspad", {FIELD: "of another target"})):
        eagle_layout.write_cell(cell, tmp_path / name, about)
    names = ("ppd", "eagle", "gto", "fspad")
    paths = paths.with_parts({name: str(tmp_path / name) for name in names})
    prompts = {kind: [{"id": kind, "prompt": "a b c w7 w9"}] for kind in KINDS}
    report = within.measure(paths, prompts, True)
    rows = {row["what"]: row for row in report.data["rows"]}
    assert len(rows) == len(within.aims("within"))
    medusa = rows["medusa of 16, tokens a step, story"]
    assert medusa["value"] is None and not medusa["verdict"]
    told = "The part medusa is not shipped; `python -m engine.training medusa` makes it."
    assert medusa["reason"] == told
    other = rows["fspad - eagle of 11, tokens a step"]
    assert other["reason"].endswith("was trained for another target than target.")
    assert rows["ppd of 4, tokens a step, template"]["value"] >= 1
    same = rows["gto - eagle of 11, tokens a step"]
    assert same["value"] == pytest.approx(0) and same["verdict"] == "missed", "it is the same cell"
    assert rows["del / none, edit"]["value"] > 0
    assert rows["eagle faster than chain, workloads"]["value"] in range(7)
    absent = [row for row in rows.values() if "is not shipped" in row["reason"]]
    assert report.text.count("is not shipped") == len(absent) > 0
    assert re.search(r"(\d\d) of \1 texts written as plain decoding writes them", report.text)
    assert rows["specdec_pp / the best fixed chain"]["value"] is None
