"""DEL: what it learns from shadow tokens, what it plans, and that drafted rows are read once."""

from importlib import import_module
from itertools import product

import pytest
import torch

from engine.core.sampling import Sampling
from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods import drafter
from engine.methods.none.drafter import NoDrafter
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import steps_of, text_of, usual
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.grids import some

Exits = import_module("engine.methods.del.exits").Exits  # "del" is a word of Python
DynamicExitDrafter = drafter("del")

PROMPT = [5, 9, 2, 40, 7, 7, 12, 5, 9, 2]


def learned(decay=1.0, head=0.0):
    """Return three exits of four layers after four places: the first exit agreed once, the second three times, the
    third never."""
    exits = Exits(4, decay, head)
    chosen = torch.tensor([1, 2, 3, 4])
    shadows = torch.tensor([[1, 0, 0, 0], [1, 2, 3, 0], [0, 0, 0, 0]])
    sure = torch.tensor([[0.9, 0.1, 0.2, 0.3], [0.8, 0.6, 0.7, 0.5], [0.1, 0.1, 0.1, 0.1]])
    exits.learn(shadows, sure, chosen)
    return exits


def test_acceptance_and_thresholds():
    exits = learned()
    assert exits.acceptance.tolist() == pytest.approx([0.25, 0.75, 0.0])
    assert exits.threshold(1) == pytest.approx((0.9 + 0.2) / 2)
    assert exits.threshold(2) == pytest.approx((0.7 + 0.5) / 2)
    assert exits.threshold(3) == 0, "no token of this exit was right, so nothing divides them"


def test_older_places_count_less():
    exits = learned(decay=0.5)
    shadows = torch.tensor([[1], [0], [1]])
    exits.learn(shadows, torch.full((3, 1), 0.5), torch.tensor([1]))
    assert exits.acceptance.tolist() == pytest.approx([1.5 / 3, 1.5 / 3, 1 / 3])


def test_the_plan_has_most_tokens_per_layer():
    """Checked by hand for the exit after two of four layers, which is right three times in four."""
    exits = learned()
    with_two = (1 + 0.75 + 0.75**2) / (4 + 2 * 2)
    assert float(exits.per_layer(5)[1, 2]) == pytest.approx(with_two)
    every = {
        (layer, length): sum(share**i for i in range(length + 1)) / (4 + layer * length)
        for layer, share in ((1, 0.25), (2, 0.75), (3, 0.0))
        for length in range(6)
    }
    plan = exits.best(5, least=1)
    assert (plan.layer, plan.length) == max((k for k in every if k[1]), key=every.get)
    assert plan.per_layer == pytest.approx(every[plan.layer, plan.length])
    assert exits.best(5).length == (0 if max(every.values()) == 1 / 4 else plan.length)


@pytest.mark.parametrize("head, pays", [(0.0, True), (1.0, True), (8.0, False)])
def test_the_head_counts_in_the_plan_and_in_plain_decoding(head, pays):
    """The exit after two of four layers is right three times in four. One drafted token makes that 1.75 tokens for 6
    layers rather than 1 for 4; with a head of 8 layers, 1.75 for 22 rather than 1 for 12, so it no longer pays."""
    exits = learned(head=head)
    values = exits.per_layer(3)
    assert values[:, 0].tolist() == pytest.approx([1 / (4 + head)] * 3)
    assert float(values[1, 1]) == pytest.approx(1.75 / (6 + 2 * head))
    assert float(values[1, 3]) == pytest.approx(2.734375 / (10 + 4 * head))
    assert bool(exits.best(3).length) == pays


@pytest.mark.parametrize("when, counted", [("pays", True), ("always", False)])
def test_only_the_question_whether_it_pays_counts_the_head(when, counted):
    target = tiny_model("llama")
    _, _, drafter = run(target, {"when": when}, count=2)
    layer = sum(
        each.numel() for each in target.model.model.layers[0].parameters() if each.dim() == 2
    )
    head = target.model.lm_head.weight.numel() / layer if counted else 0.0
    assert float(drafter._exits.per_layer(1)[0, 0]) == pytest.approx(1 / (target.layers + head))


GREEDY = Sampling()


def run(target, options, sampling=GREEDY, count=24, cls=DynamicExitDrafter):
    drafter = usual(cls, Models(target), **options)
    steps = steps_of(Models(target), drafter, PROMPT, count, sampling, "sampler_match")
    return text_of(steps), steps, drafter


def idle_above(layer):
    """Return a target of four layers whose upper layers add nothing, so that the exit below them predicts what the
    target predicts."""
    module = tiny_hf_model("llama", num_hidden_layers=4)
    with torch.no_grad():
        for one in module.model.layers[layer:]:
            one.self_attn.o_proj.weight.zero_()
            one.mlp.down_proj.weight.zero_()
    return language_model(module, None, "idle", lean=False)


def test_it_reads_and_keeps_no_more_of_the_prompt_than_it_tries(monkeypatch):
    seen, begin = [], DynamicExitDrafter.begin
    monkeypatch.setattr(
        DynamicExitDrafter, "begin", lambda own, start: (seen.append(start), begin(own, start))
    )
    _, _, drafter = run(tiny_model("llama"), {"prompt": 3}, count=2)
    features = seen[0].features
    assert len(features) == 3 and features.untyped_storage().nbytes() == features.nbytes
    assert drafter.start.features is None


def test_it_finds_the_exit_behind_which_nothing_changes():
    target = idle_above(2)
    text, steps, drafter = run(target, {"length": 5})
    assert {step.draft.begun.layer for step in steps if len(step.tree)} == {2}
    assert [len(step.tree) for step in steps[:-1]] == [5] * (len(steps) - 1)
    assert drafter._exits.acceptance[1:].tolist() == [1, 1]
    assert text == run(target, {}, cls=NoDrafter)[0] and len(steps) == 4


def test_where_no_exit_is_right_it_decodes_plainly():
    _, steps, drafter = run(tiny_model("llama"), {"interval": 3})
    assert float(drafter._exits.acceptance.max()) < 0.4
    assert sum(len(step.tree) for step in steps) < 3


def test_only_steps_that_look_at_the_exits_have_features():
    """Every third one of those without a draft, and each one with a draft."""
    found = []

    class Noting(DynamicExitDrafter):
        def observe(self, kept):
            found.append((len(kept.tree), kept.features is not None))
            super().observe(kept)

    run(CompiledModel(tiny_hf_model("llama"), None, "compiled"), {"interval": 3}, cls=Noting)
    undrafted = [featured for drafted, featured in found if not drafted]
    assert len(undrafted) > 6 and undrafted[-6:].count(True) == 2
    found.clear()
    run(idle_above(2), {"length": 5}, cls=Noting)
    assert all(featured for drafted, featured in found if drafted)


GRID = product(["llama", "gemma2", "gpt2", "gpt_oss"], [0.0, 0.8])
ALONE = ("llama", 0.0)
"""What a temperature changes, no architecture does: greedy decoding is tried with one of them."""


@pytest.mark.parametrize(
    "architecture, temperature", some(GRID, lambda case: case[1] or case == ALONE)
)
def test_the_text_of_plain_decoding(architecture, temperature):
    target, sampling = tiny_model(architecture), Sampling(temperature, seed=4)
    plain, *_ = run(target, {}, sampling, cls=NoDrafter)
    found, steps, _ = run(target, {"length": 3, "when": "always", "stop": "length"}, sampling)
    assert found == plain
    assert sum(len(step.tree) for step in steps) > 10


def test_a_drafted_row_is_read_by_each_layer_once():
    target = tiny_model("llama")
    read = []
    for index, layer in enumerate(target.model.model.layers):
        layer.register_forward_hook(
            lambda _, rows, __, index=index: read.append((index, rows[0].shape[1]))
        )
    settings = {"length": 3, "when": "always", "stop": "length", "prompt": 1}
    _, steps, drafter = run(target, settings, count=8)
    passes = drafter.passes()["own layers"]
    assert passes == sum(len(step.tree) for step in steps) > 0
    rows = [sum(count for layer, count in read if layer == index) for index in range(target.layers)]
    assert len(set(rows)) == 1, (
        "as many rows in each layer, the prompt's and the trial's among them"
    )
