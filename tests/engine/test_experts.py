"""A target whose feed-forward layers are experts: a pass computes those that its rows need together, and its text is that of
a loop over rows and experts."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

from engine.core.sampling import Sampling
from engine.model.experts import ExpertsForCausalLM, ExpertsModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.sizes.expert_use import idle, used, widened
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.tiny import generated
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of
from tests.verifiers.step_errors import step_error

PROMPT = [5, 9, 23, 40, 7, 9, 23, 40]
GATES = [0, 2]
"""Experts of a row: those with a score above 0, or the best two."""


def module_of(per_token: int, seed: int = 0, **changes) -> ExpertsForCausalLM:
    config = config_of("experts")
    sizes = {"num_experts": 16, "expert_size": 6, "num_experts_per_tok": per_token, **changes}
    for name, value in sizes.items():
        setattr(config, name, value)
    return random_module(config, seed)


class Plain(nn.Module):
    """The same layer, row by row and expert by expert."""

    def __init__(self, experts) -> None:
        super().__init__()
        self.own = experts

    def forward(self, hidden):
        rows = [self.row(row) for row in hidden.flatten(0, -2)]
        return torch.stack(rows).view_as(hidden)

    def row(self, row):
        total, size = torch.zeros_like(row), self.own.size
        for expert, weight in self.weights(self.own.gate.scores.weight @ row):
            mine = slice(expert * size, (expert + 1) * size)
            units = self.own.up[mine] @ row
            total += weight * (units * units.sigmoid()) @ self.own.down[mine]
        return total

    def weights(self, scores):
        gate = self.own.gate
        if gate.most:
            best = sorted(range(len(scores)), key=lambda e: -scores[e])[: gate.most]
            whole = sum(scores[e].exp() for e in best)
            return [(e, scores[e].exp() / whole) for e in best]
        positive = [(e, score) for e, score in enumerate(scores) if score > 0]
        mean = sum(score**2 for _, score in positive) / len(scores)
        norm = gate.norm
        return [
            (e, norm.weight[e] * score / (mean + norm.variance_epsilon).sqrt())
            for e, score in positive
        ]


def plain(module: ExpertsForCausalLM) -> ExpertsForCausalLM:
    made = copy.deepcopy(module)
    for layer in made.model.layers:
        layer.mlp = Plain(layer.mlp)
    return made


@pytest.fixture(scope="module", params=GATES, ids=["scores", "best two"])
def module(request):
    return module_of(request.param)


@pytest.fixture(scope="module")
def model(module) -> ExpertsModel:
    return language_model(copy.deepcopy(module), None, "tiny experts")


@pytest.fixture(scope="module")
def expected(module):
    with torch.no_grad():
        return generated(plain(module), PROMPT, 20, eos_token_id=-1)


@pytest.mark.parametrize("key", ["none", "chain", "dyspec", "prompt_lookup", "swift"])
def test_every_drafter_writes_the_text_of_a_plain_loop(model, expected, key):
    draft = language_model(random_module(config_of("llama"), 4), None, "draft", lean=False)
    models = Models(model, {"draft": draft})
    assert text_of(steps_of(models, key, PROMPT, 20)) == expected


@torch.no_grad()
def test_experts_that_no_row_needs_are_not_computed(module, model):
    """Their weights are no numbers, which even a weight of 0 would not hide."""
    text = torch.tensor(PROMPT[:3])
    using, broken = used(model, PROMPT[:3]).any(1), copy.deepcopy(module)
    for layer, needed in zip(broken.model.layers, using, strict=True):
        assert 0 < needed.sum() < len(needed)
        for weight in (layer.mlp.up, layer.mlp.down):
            weight.unflatten(0, (-1, layer.mlp.size))[~needed] = float("nan")
    torch.testing.assert_close(broken(text[None]).logits, module(text[None]).logits)
    layer.mlp.up.unflatten(0, (-1, layer.mlp.size))[needed] = float("nan")
    assert broken(text[None]).logits.isnan().any()


@pytest.mark.parametrize("key", ["none", "prompt_lookup"])
def test_a_step_shows_what_its_pass_left_out(model, key):
    text = list(PROMPT)
    for step in steps_of(Models(model), key, PROMPT, 12):
        rows = [text[-1], *step.tree.tokens]
        using = used(model, [*text[:-1], *rows])[:, -len(rows) :]
        (gauge,) = (one for one in step.tree.exhibits if one.kind == "gauge")
        assert gauge.value == pytest.approx(idle(using, len(rows)))
        assert gauge.mark == pytest.approx(idle(using[:, :1], 1))
        text += step.output


@torch.no_grad()
def test_a_layer_may_need_no_expert():
    module = module_of(0)
    module.gates[0].scores.weight.zero_()
    text = torch.tensor([PROMPT])
    torch.testing.assert_close(module(text).logits, plain(module)(text).logits)


def test_a_step_has_the_law_of_the_target():
    """Enumerated. Where the three rows of a check share the experts of the first one, the law is another."""
    module, draft = (module_of(0, seed, vocab_size=4) for seed in (7, 8))
    target, small = (language_model(one, None, "tiny", lean=False) for one in (module, draft))
    models = Models(target, {"draft": small})

    def error() -> float:
        make = partial(built, "chain", models, length=2)
        return step_error(models, make, verifier("rejection"), Sampling(1.0), (1, 2, 0, 1, 2))

    assert error() < 1e-5
    for gate in module.gates:
        gate.forward = _of_the_first_row(gate.forward)
    assert error() > 5e-3


def _of_the_first_row(gate):
    def weights(hidden):
        found = gate(hidden)
        return found * (found[..., :1, :] != 0) if hidden.shape[-2] == 3 else found

    return weights


def test_the_share_of_idle_experts_is_that_of_every_stretch():
    using = torch.rand(2, 9, 5, generator=torch.Generator().manual_seed(1)) > 0.7
    for rows in (1, 3, 9):
        counted = [
            not any(using[layer, place, e] for place in range(start, start + rows))
            for layer in range(2)
            for start in range(9 - rows + 1)
            for e in range(5)
        ]
        assert idle(using, rows) == pytest.approx(sum(counted) / len(counted))


@torch.no_grad()
def test_wider_experts_compute_the_same(module):
    text = torch.tensor([PROMPT])
    wide = widened(module, 3)
    assert wide.model.layers[0].mlp.up.shape[0] == 3 * module.model.layers[0].mlp.up.shape[0]
    torch.testing.assert_close(wide(text).logits, module(text).logits)
