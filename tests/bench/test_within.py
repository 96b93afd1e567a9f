"""The bench of drafting from within: a figure for each that can take part, a sentence for each that cannot."""

import json
import shutil
from pathlib import Path

import pytest

from engine.bench import contestants, within
from engine.bench.command import Plan
from engine.bench.suites import SUITES
from engine.cli.flags import SUITE_NAMES
from engine.methods.eagle.eagle_layout import write_cell
from engine.methods.eagle.part import tiny_cell as eagle_cell
from engine.methods.shared.prompt_tokens_part import PromptTokens
from engine.parts import opening
from engine.parts.digest import FIELD
from engine.parts.loading import ModelPaths, load_models

PLAN = Plan(prompts=1, rounds=1, tokens=12, schedules=())


def usual(cls, options, *_):
    """The usual size, because finding the size that pays takes longer than the rest of the test."""
    return options | ({cls.size_option: cls.usual_size} if cls.size_option else {})


@pytest.fixture
def paths(tiny_paths, tmp_path, monkeypatch):
    """Copies of the models, read through their modules: compiling takes longer than the rest of the test."""
    folder = shutil.copytree(Path(tiny_paths.target).parent, tmp_path / "models")
    monkeypatch.setattr(opening, "compiled_model", lambda *_: None)
    monkeypatch.setattr(opening, "compiled_cell_contexts", lambda *_: None)
    return ModelPaths(str(folder / "target"), {"draft": str(folder / "draft")})


@pytest.mark.exhaustive
def test_a_small_bench(paths, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(contestants, "settle_size", usual)
    target = load_models(paths, {}, "float32", "cpu").target
    PromptTokens.tiny(target).save(tmp_path / "ppd", {})
    cell = eagle_cell(target)
    for name, about in (("eagle", {}), ("gto", {}), ("fspad", {FIELD: "of another target"})):
        write_cell(cell, tmp_path / name, about)
    names = ("ppd", "eagle", "gto", "fspad")
    paths = paths.with_parts({name: str(tmp_path / name) for name in names})
    prompts = {kind: [{"id": kind, "prompt": "a b c w7 w9"}] for kind in within.EVERY}
    out = tmp_path / "within.json"
    table = within.run_within(paths, prompts, PLAN, str(out))
    rows = {row.figure.what: row for row in table}
    assert len(rows) == len(within.TABLE) == 17
    medusa = rows["medusa of 16, tokens a step, story"]
    assert medusa.value is None and not medusa.verdict
    assert (
        medusa.reason
        == "The part medusa is not shipped; `python -m engine.training medusa` makes it."
    )
    assert rows["fspad - eagle of 11, tokens a step, all workloads"].reason.endswith(
        "was trained for another target than target."
    )
    assert rows["ppd of 4, tokens a step, template"].value >= 1
    same = rows["gto - eagle of 11, tokens a step, all workloads"]
    assert same.value == pytest.approx(0) and same.verdict == "missed", "it is the same cell"
    assert rows["del / none, tokens a second, edit"].value > 0
    assert rows["eagle faster than chain, of 6 workloads"].value in range(7)
    told = capsys.readouterr().out
    absent = [row for row in table if "is not shipped" in row.reason]
    assert told.count("is not shipped") == len(absent) > 0
    # chain, six fixed chains and eagle of two sizes, once with gto, on six workloads; ppd on one, del and swift on another
    assert "63 of 63 texts written as plain decoding writes them" in told
    assert rows["specdec_pp / the best fixed chain, tokens a second, all workloads"].value is None
    written = json.loads(out.read_text("utf-8"))["rows"]
    assert [row["value"] for row in written] == [row.value for row in table]
    assert "within" in SUITES and "within" in SUITE_NAMES
