"""The target's training: it computes what transformers computes, resumes as if never stopped, and grows as stated."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from engine.errors import UserError
from engine.training import loop, pretraining, window_files
from engine.training.new_models import target_config
from engine.training.plan import TARGET_PLAN, TrainingPlan, numbered
from engine.training.pretraining import Curve, Lessons, as_model, grown, new_model, train
from tests.training.lessons import SMALL

PLAN = TrainingPlan(
    numbered((32, 64)),
    layers=2,
    shallow=1,
    shallow_layers=1,
    steps_per_file=3,
    step_tokens=256,
    micro_tokens=64,
    averaged_steps=2,
)


@pytest.fixture(scope="module")
def windows(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    window_files.write_files(folder, tokenizer, folder / "none", PLAN, 0, say=lambda _: None)
    return folder


@pytest.fixture(autouse=True)
def _one_format(monkeypatch):
    """Fix the number format, because otherwise each run would choose it by a measurement."""
    monkeypatch.setattr(loop, "pick_precision", lambda device: torch.float32)


@pytest.fixture
def config(tokenizer):
    return target_config(len(tokenizer), tokenizer.eos_token_id, 2, **SMALL)


def run(config, windows, path, until=None, say=lambda _: None):
    return train(config, PLAN, windows, path, until, say=say)


def lessons(config, windows, plan) -> Lessons:
    model = new_model(config, 1, 0)
    return Lessons(model, plan, windows, Curve(windows / "x.json", 0, plan, lambda _: None))


def gradients(made: Lessons, step: int = 0) -> dict[str, torch.Tensor]:
    loss, tokens = made.loss_of(step)
    assert tokens == PLAN.step_tokens
    loss.backward()
    return {name: one.grad for name, one in made.model.named_parameters()}


def test_a_step_has_the_loss_and_the_gradient_that_transformers_gives(config, windows):
    made = lessons(config, windows, PLAN)
    tokens, counted = window_files.windows_of(windows, 0).batch(0, PLAN.rows(0))
    labels = tokens.where(counted, -100)
    theirs = new_model(config, 1, 0)
    expected = theirs(input_ids=tokens, labels=labels).loss
    expected.backward()
    found = gradients(made)
    assert made.curve.recent == [pytest.approx(expected.item(), rel=1e-5)]
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-3)


def test_the_end_of_a_text_learns_as_a_token_to_read(config, windows):
    """transformers leaves the padding token, which is the same, out of the gradient."""
    module = LlamaForCausalLM(config)
    assert module.model.embed_tokens.padding_idx == config.eos_token_id
    assert new_model(config, 1, 0).model.embed_tokens.padding_idx is None


def test_the_size_of_the_pieces_does_not_matter(config, windows, monkeypatch, tokenizer):
    """Neither for the usual windows nor for the rows against repetition."""
    story = tokenizer("Tom had a red ball. Tom had a red ball. Tom had a red ball.").input_ids
    ends = np.cumsum([len(story)] * 8)
    np.savez(windows / "stories.npz", tokens=np.array(story * 8, dtype=np.uint16), ends=ends)
    monkeypatch.setattr(pretraining, "POOL", 8)
    plan = replace(PLAN, unlikely_from=0.0, unlikely_rows=4)
    whole = gradients(lessons(config, windows, replace(plan, micro_tokens=4096)))
    pieces = gradients(lessons(config, windows, plan))
    without = gradients(lessons(config, windows, PLAN))
    for name, expected in whole.items():
        torch.testing.assert_close(pieces[name], expected, atol=1e-6, rtol=1e-3)
    assert any(not torch.allclose(pieces[n], without[n], atol=1e-4) for n in whole)


def test_resumed_equals_uninterrupted(config, windows, tmp_path):
    whole = run(config, windows, tmp_path / "a.pt")
    for stop in (2, 4, None):  # within the first file, and after the model has grown
        resumed = run(config, windows, tmp_path / "b.pt", stop)
    assert whole["index"] == resumed["index"] == PLAN.steps
    assert pretraining.depth_of(whole) == 2
    for name, state in whole["optimizer"]["state"].items():
        torch.testing.assert_close(whole["model"][name], resumed["model"][name])
        for kind, tensor in state.items():
            torch.testing.assert_close(resumed["optimizer"]["state"][name][kind], tensor)
    mean, last = (as_model(config, whole, mean).state_dict() for mean in (True, False))
    assert any(not torch.equal(mean[name], last[name]) for name in last)


def test_a_signal_lets_the_step_end_and_saves_it(config, windows, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "EVERY", 1)

    def say(line: str) -> None:
        if line.startswith("step 2 "):
            signal.raise_signal(signal.SIGTERM)

    path, before = tmp_path / "c.pt", signal.getsignal(signal.SIGTERM)
    assert run(config, windows, path, say=say)["index"] == 2
    assert signal.getsignal(signal.SIGTERM) is before
    curve = path.with_suffix(".curve.json")
    assert [point[0] for point in json.loads(curve.read_text())] == [1, 2]
    assert run(config, windows, path)["index"] == PLAN.steps
    assert [point[0] for point in json.loads(curve.read_text())] == [*range(1, PLAN.steps + 1)]


def test_a_checkpoint_of_an_older_trainer_is_refused(config, windows, tmp_path):
    torch.save({"weights": torch.zeros(3), "step": 4}, tmp_path / "target.pt")
    with pytest.raises(UserError, match=r"^target\.pt is a checkpoint of an older trainer.*\.$"):
        run(config, windows, tmp_path / "target.pt")
    assert torch.load(tmp_path / "target.pt")["step"] == 4, "it stays as it was"


def test_growth_repeats_layers_and_moments(config, windows, tmp_path):
    saved = run(config, windows, tmp_path / "d.pt", until=3)
    assert pretraining.depth_of(saved) == 1
    deep = grown(grown(saved, 2), 4)
    assert pretraining.depth_of(deep) == 4
    shallow, model = (as_model(config, one) for one in (saved, deep))
    for layer in model.model.layers:
        pairs = zip(layer.parameters(), shallow.model.layers[0].parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    name, states = "mlp.up_proj.weight", deep["optimizer"]["state"]
    moment = saved["optimizer"]["state"][f"model.layers.0.{name}"]["m"]
    assert moment.any()
    assert all(torch.equal(states[f"model.layers.{i}.{name}"]["m"], moment) for i in range(4))
    assert torch.equal(model.model.embed_tokens.weight, shallow.model.embed_tokens.weight)


def test_the_files_say_what_was_read_of_each_source(windows):
    sources = json.loads((windows / "sources.json").read_text())
    assert list(sources) == ["0", "1"]
    assert sum(sources["1"]["tokens"].values()) >= 2 * 3 * 256


def test_the_schedule():
    plan = TARGET_PLAN
    assert plan.steps * plan.step_tokens > 80e6
    assert plan.rate(0) < 0.1 and plan.rate(0.5) == 1 and plan.rate(1.0) == 0
    assert [*plan.stages()] == [(4, 6 * plan.steps_per_file), (8, plan.steps)]
    assert [plan.file(s).length for s in (0, plan.steps // 2, 10 * plan.steps_per_file)] == [
        256,
        512,
        1024,
    ]
    assert [file.number for file in plan.files if file.finishing] == [11, 12]
    assert not plan.unlearns(plan.steps // 2) and plan.unlearns(plan.steps - 1)
