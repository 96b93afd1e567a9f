"""The recipe of a multi-token-prediction layer: what is trained is what drafts, and it drafts longer than before."""

from __future__ import annotations

import copy
import json

import pytest
import torch

from engine.core.options import resolve
from engine.methods.mtp.mtp_layout import read_mtp
from engine.methods.mtp.part import KIND
from engine.methods.mtp.recipe import MtpStudent
from engine.parts.digest import FIELD
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of
from tests.training.lessons import greedy_text, learn_own_text, lesson, tiny_target

pytestmark = pytest.mark.exhaustive


def drafted(target, folder):
    """Tokens a step, in greedy texts after each of some tokens."""
    opened = language_model(copy.deepcopy(target), None, "tiny", lean=False)
    part = KIND.load(str(folder), opened, torch.float32, "cpu")
    options = {"nodes": 3, "depth": 3, "top_k": 1, "stop_below": 0.0}
    texts = [
        steps_of(Models(opened, {"mtp": part}), "mtp", [first, first + 1], 20, **options)
        for first in range(1, 9)
    ]
    steps = [step for text in texts for step in text]
    return sum(len(step.output) for step in steps) / len(steps)


def test_a_trained_layer_drafts_longer(tmp_path):
    target = tiny_target()
    made = MtpStudent(target, resolve("mtp", MtpStudent.options, {}))
    torch.manual_seed(0)
    layer = made.start()
    judged = lesson(target, made, greedy_text())
    before = made.accepted(layer, judged).float().mean()
    made.save(layer, tmp_path / "before", {})
    learn_own_text(made, layer, 60, 3e-3)
    assert made.accepted(layer, judged).float().mean() > before + 0.3
    made.save(layer, tmp_path / "after", {FIELD: "0123"})
    told = json.loads((tmp_path / "after" / "config.json").read_text())
    assert told[FIELD] == "0123" and told["speculators_model_type"] == "mtp"
    assert drafted(target, tmp_path / "after") > drafted(target, tmp_path / "before")


def test_a_trained_layer_goes_on(tmp_path):
    """From its own files it begins where it was, to bfloat16."""
    target = tiny_target()
    settings = resolve("mtp", MtpStudent.options, {"steps": 2})
    layer = MtpStudent(target, settings).start()
    MtpStudent(target, settings).save(layer, tmp_path, {})
    begun = MtpStudent(target, settings, read_mtp(tmp_path, torch.float32, "cpu")).start()
    for name, weight in begun.state_dict().items():
        assert torch.equal(weight, layer.state_dict()[name].bfloat16().float()), name
    assert all(weight.requires_grad for weight in begun.parameters())
