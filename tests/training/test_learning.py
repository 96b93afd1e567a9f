"""What lessons are worth: a part keeps more of its target's text after a few batches, counted by its recipe and in a run
with its files, which writes the target's own text."""

from __future__ import annotations

import itertools
import json
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from engine.methods import drafter
from engine.methods.mtp.mtp_layout import read_mtp
from engine.methods.shared.eagle_layout import read_cell
from engine.parts.digest import FIELD
from engine.parts.files import halve
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from tests.drafters.writing import usual
from tests.training.lessons import (
    begun,
    greedy_text,
    learn_own_text,
    lesson,
    opened,
    tiny_target,
    written,
)

KNOWN = 30
CASES = {
    "eagle": ("eagle", {}),
    "eagle, tested": ("eagle", {"steps": 3}),
    "eagle3": ("eagle", {"layout": "eagle3", "steps": 3, "vocabulary": KNOWN}),
    "speculators": ("eagle", {"layout": "speculators"}),
    "mtp": ("mtp", {}),
    "falcon, 2": ("falcon", {"block": 2}),
    "falcon, 3": ("falcon", {"block": 3}),
}
BORROWED = {
    "draft": ("chain", {"vocabulary": KNOWN}),
    "cell": ("eagle", {"layout": "eagle3", "steps": 3, "vocabulary": KNOWN, "head": "target"}),
    "blocks": ("dflash", {"block": 4, "vocabulary": KNOWN, "layers": 1}),
}
"""Name -> the recipe and its options; those of ``BORROWED`` store no rows of the target's head."""
DRAFTS = {
    "chain": {"length": 3, "stop_below": 0.0},
    "dflash": {"length": 3},
    "falcon": {"nodes": 4, "passes": 2, "top_k": 1},
}
CELLS = {"nodes": 4, "top_k": 1, "stop_below": 0.0}


@cache
def trained(name):
    """Return the student, its part after a few batches, and the gain in its accepted length."""
    key, options = (CASES | BORROWED)[name]
    made, part = begun(key, *([0] if key == "dflash" else []), **options)
    judged = lesson(made, greedy_text())
    before = made.accepted(part, judged).float().mean()
    learn_own_text(made, part, 60, 5e-3 if key == "falcon" else 3e-3, 48, 12)
    return made, part.eval(), made.accepted(part, judged).float().mean() - before


@cache
def plain_text():
    model = opened(tiny_target())
    return written(model, usual("none", Models(model)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*CASES, *BORROWED, *(f"{name}, 8 bits" for name in BORROWED)])
def test_it_learns_and_a_run_with_its_files_writes_the_targets_text(name, tmp_path):
    name, _, eight_bits = name.partition(", 8")
    made, part, gain = trained(name)
    assert gain > 0.3
    made.save(part, tmp_path / "part", {FIELD: "0123"})
    if eight_bits:
        halve(tmp_path / "part")
    assert json.loads((tmp_path / "part" / "config.json").read_text())[FIELD] == "0123"
    key, model = made.key, opened(tiny_target())
    ((role, kind),) = drafter(key).needs.items()
    found = kind_of(kind).load(str(tmp_path / "part"), model, torch.float32, "cpu")
    if name in BORROWED:
        stored = load_file(tmp_path / "part" / "model.safetensors")
        assert not any("embed" in name or "lm_head" in name for name in stored)
        assert int(stored["t2d"].sum()) == KNOWN
        assert found is kind_of(kind).load(str(tmp_path / "part"), model, torch.float32, "cpu")
    steps = written(model, usual(key, Models(model, {role: found}), **DRAFTS.get(key, CELLS)))
    assert [*itertools.chain(*steps)] == [*itertools.chain(*plain_text())]
    assert len(steps) < 0.8 * len(plain_text()), "the same text in fewer steps"


MASKED = {"tokens": 4, "heads": 0, "inner": 0}


@pytest.mark.parametrize(
    ("key", "first", "options", "read"),
    [
        ("eagle", [], {}, read_cell),
        ("mtp", [], {}, read_mtp),
        ("parallel_eagle", ["eagle"], MASKED, read_cell),
    ],
)
def test_a_cell_goes_on_from_its_files(key, first, options, read, tmp_path):
    """It begins where it was, to bfloat16."""
    made, part = begun(key, *(begun(one)[1].requires_grad_(False) for one in first), **options)
    with torch.no_grad():
        for weight in filter(lambda one: one.requires_grad, part.parameters()):
            weight += 0.1 * torch.randn_like(weight)
    made.save(part, tmp_path, {})
    again = type(made)(made.target, made.settings, read(tmp_path, torch.float32, "cpu")).start()
    found = again.state_dict()
    for name, weight in part.state_dict().items():
        assert torch.equal(found[name], weight.bfloat16().float()), name
    assert all(weight.requires_grad for weight in again.parameters())
