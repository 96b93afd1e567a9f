"""The target's training: it computes what transformers computes, resumes as if never stopped, and grows as stated."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.training import window_files
from engine.training.chunked_loss import ChunkedLoss, likely
from engine.training.data_parallel import train
from engine.training.functional_llama import Shape, hidden_states, rotation
from engine.training.new_models import target_config
from engine.training.plan import TARGET_PLAN, TrainingPlan, numbered
from engine.training.shared_state import SharedState, as_model

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}
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


def run(tokenizer, windows, path, until=None, processes=1, plan=PLAN):
    return train(
        target_config(len(tokenizer), tokenizer.eos_token_id, 2, **SMALL),
        plan,
        windows,
        path,
        processes,
        until,
        dtype=torch.float32,
        compiled=False,
        say=lambda _: None,
    )


def test_it_computes_what_transformers_computes():
    torch.manual_seed(0)
    model = LlamaForCausalLM(target_config(64, 0, 2, **SMALL))
    shape = Shape.of(model.config)
    flat = torch.zeros(shape.size())
    for name, view in shape.views(flat).items():
        view.copy_(model.state_dict()[name])
    leaves = [t.detach().requires_grad_() for t in shape.leaves(flat)]
    tokens = torch.randint(
        1, 64, (2, 300)
    )  # transformers leaves the padding token out of the gradient
    cos, sin = rotation(shape, 300, torch.float32)
    hidden = hidden_states(leaves, tokens, cos, sin, shape)
    torch.testing.assert_close(hidden, model.model(tokens).last_hidden_state, atol=1e-5, rtol=1e-4)
    weights = torch.full((2, 300), 1 / 598)
    weights[:, -1] = 0
    rows = (x.flatten() for x in (tokens.roll(-1, 1), weights))
    loss = ChunkedLoss.apply(likely, hidden.flatten(0, 1), leaves[0], *rows)
    loss.backward()
    theirs = model(tokens, labels=tokens).loss
    theirs.backward()
    assert loss.item() == pytest.approx(theirs.item(), rel=1e-5)
    gradients = shape.views(torch.cat([leaf.grad.flatten() for leaf in leaves]))
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-6, rtol=1e-3)


def test_resumed_equals_uninterrupted(tokenizer, windows, tmp_path):
    whole = run(tokenizer, windows, tmp_path / "a.pt").state_dict()
    for stop in (2, 4, None):  # within the first file, and after the model has grown
        resumed = run(tokenizer, windows, tmp_path / "b.pt", stop).state_dict()
    assert whole["step"] == resumed["step"] == PLAN.steps and whole["depth"] == 2
    for name in ("weights", "moment", "second", "mean"):  # sums are rounded by how memory lies
        torch.testing.assert_close(whole[name], resumed[name], atol=1e-6, rtol=1e-4)
    assert not torch.equal(whole["mean"], whole["weights"])


def test_the_rate_of_processes_does_not_matter(tokenizer, windows):
    """Two processes add up the same gradient as one."""
    from engine.training.data_parallel import Worker

    config = target_config(len(tokenizer), tokenizer.eos_token_id, 2, **SMALL)
    sums = []
    for processes in (1, 2):
        state = SharedState(config, processes, torch.float32)
        state.begin(1, 0)
        for rank in range(processes):
            Worker(rank, processes, state, None, PLAN, windows, None, False)._learn(0)
        sums.append(state.gradients.sum(0))
    torch.testing.assert_close(*sums, atol=1e-6, rtol=1e-4)


def test_growth_repeats_layers_and_moments(tokenizer):
    config = target_config(len(tokenizer), tokenizer.eos_token_id, 4, **SMALL)
    state = SharedState(config, 1, torch.float32)
    state.begin(2, 0)
    state.moment.copy_(torch.randn_like(state.moment))
    before = {
        n: v.clone() for n, v in state.shape().views(state.moment[: state.shape().size()]).items()
    }
    shallow = as_model(config, 2, state.weights)
    state.grow(4)
    deep = as_model(config, 4, state.weights)
    moments = state.shape().views(state.moment)
    for i in range(4):
        pairs = zip(
            deep.model.layers[i].parameters(), shallow.model.layers[i % 2].parameters(), strict=True
        )
        assert all(torch.equal(a, b) for a, b in pairs)
        name = "mlp.up_proj.weight"
        assert torch.equal(
            moments[f"model.layers.{i}.{name}"], before[f"model.layers.{i % 2}.{name}"]
        )
    assert torch.equal(deep.model.embed_tokens.weight, shallow.model.embed_tokens.weight)


def test_the_files_say_what_was_read_of_each_source(windows):
    sources = json.loads((windows / "sources.json").read_text())
    assert list(sources) == ["0", "1"]
    assert sum(sources["1"]["tokens"].values()) >= 2 * 3 * 256


def test_the_schedule():
    plan = TARGET_PLAN
    assert plan.steps * plan.step_tokens > 80e6
    assert plan.rate(0) < 0.1 and plan.rate(plan.steps // 2) == 1 and plan.rate(plan.steps) == 0
    assert plan.depth(0) == 4 and plan.depth(plan.steps - 1) == 8
    assert [plan.file(s).length for s in (0, plan.steps // 2, 10 * plan.steps_per_file)] == [
        256,
        512,
        1024,
    ]
    assert [file.number for file in plan.files if file.finishing] == [11, 12]
    assert not plan.unlearns(plan.steps // 2) and plan.unlearns(plan.steps - 1)
