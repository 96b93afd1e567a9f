"""EAGLE's training: the trained computation is what drafts, and a trained cell drafts longer than an untrained one."""

from __future__ import annotations

import copy
import itertools
import json

import pytest
import torch
import torch.nn.functional as F

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.eagle.drafter import EagleDrafter
from engine.methods.eagle.part import KIND
from engine.methods.eagle.recipe import EagleStudent
from engine.methods.shared.eagle_reader import EagleReader
from engine.parts.digest import FIELD
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.training.cell_training import (
    DECAY,
    FEATURES,
    TOKENS,
    accepted,
    eagle_config,
    feature_loss,
    most_frequent,
    new_cell,
    unrolled,
    unrolled_loss,
)
from tests.training.lessons import VOCABULARY, greedy_text, learn, lesson, own_text, tiny_target

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def target():
    return tiny_target()


@pytest.fixture(scope="module")
def text():
    return own_text()


@pytest.fixture(scope="module")
def greedy():
    return greedy_text()


def student(target, text, **settings):
    made = EagleStudent(target, resolve("eagle", EagleStudent.options, settings))
    made.prepare(text)
    torch.manual_seed(0)
    return made, made.start()


SETTINGS = {
    "features": {},
    "tested": {"steps": 3},
    "eagle3": {"layout": "eagle3", "steps": 3, "vocabulary": 30},
    "speculators": {"layout": "speculators"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_trained_cell_drafts_longer(name, target, text, greedy, tmp_path):
    """Measured by teacher forcing, and in a run of the drafter with the part as it was saved."""
    made, cell = student(target, text, **SETTINGS[name])
    judged = lesson(target, made, greedy)
    untrained = made.accepted(cell, judged).float().mean()
    made.save(cell, tmp_path / "before", {})
    learn(
        lambda index: made.loss(
            cell, lesson(target, made, text[(torch.arange(12) + 12 * index) % len(text)], index)
        ),
        cell,
        60,
    )
    made.save(cell, tmp_path / "after", {FIELD: "0123"})
    assert made.accepted(cell, judged).float().mean() > untrained + 0.8
    before, after = (written(target, tmp_path / one) for one in ("before", "after"))
    assert len(after) < len(before), "the same text in fewer steps"
    assert [*itertools.chain(*after)] == [*itertools.chain(*before)]
    assert json.loads((tmp_path / "after" / "config.json").read_text())[FIELD] == "0123"


def opened(target):
    """A copy of the target for the engine, which gives a module an attention function of its own."""
    return language_model(copy.deepcopy(target), None, "tiny", lean=False)


def written(target, folder) -> list[list[int]]:
    """The output of each step of a few texts, drafted in chains by the part in this folder."""
    model = opened(target)
    models = Models(model, {"eagle": KIND.load(str(folder), model, torch.float32, "cpu")})
    options = resolve("eagle", EagleDrafter.options, {"top_k": 1, "nodes": 4, "stop_below": 0.0})
    outputs = []
    for prompt in ([7, 3, 9], [5, 20]):
        drafter = EagleDrafter.build(options, models)
        request = TextRequest(drafter, verifier("greedy"), Sampling(), prompt, 30)
        outputs += [step.output for step in run_loop(model, request)]
    return outputs


@torch.no_grad()
@pytest.mark.parametrize("layout", ["eagle", "eagle3"])
def test_what_is_unrolled_is_what_drafts(layout, target, text):
    made, cell = student(target, text, layout=layout)
    cell.eval()
    given = lesson(target, made, text[:1])
    steps = list(
        unrolled(cell, given.features, given.tokens, target.get_input_embeddings(), steps=3)
    )
    model, tokens = opened(target), text[0].tolist()
    for row in (0, 1, 7, 15):
        reader = EagleReader(cell, model, Sampling())
        reader.learn(given.features[0, : row + 1])
        level = reader.catch_up(tokens[: row + 2])
        torch.testing.assert_close(level.states[0], steps[0][0, row], atol=1e-4, rtol=1e-4)
        for step in (1, 2):
            level = reader.grow(level.states, [tokens[row + 1 + step]], step - 1, None, [()])
            torch.testing.assert_close(level.states[0], steps[step][0, row], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_losses_are_those_of_the_papers(target, text):
    """The expected losses are computed row by row, from the cell's output at each row."""
    embedding, head = target.get_input_embeddings(), target.get_output_embeddings()
    counted = torch.rand(4, 24, generator=torch.Generator().manual_seed(1)) > 0.4
    made, cell = student(target, text)
    given = lesson(target, made, text[:4])
    shared = (given.features, given.tokens, given.logits, counted, embedding, head)
    p = given.logits.softmax(-1)
    (states,) = unrolled(cell, given.features, given.tokens, embedding, 1)
    near, said = [], []
    for window in range(4):
        for place in range(2, 24):
            if counted[window, place]:
                state, true = states[window, place - 2], given.features[window, place - 1]
                near.append(F.smooth_l1_loss(state, true))
                said.append(-(p[window, place - 1] * head(state).log_softmax(-1)).sum())
    expected = FEATURES * torch.stack(near).mean() + TOKENS * torch.stack(said).mean()
    assert feature_loss(cell, *shared) == pytest.approx(float(expected), rel=1e-4)

    made, cell = student(target, text, layout="eagle3", vocabulary=30)
    given = lesson(target, made, text[:4])
    shared = (given.features, given.tokens, given.logits, counted, embedding, head)
    known, total = cell.target_tokens, 0.0
    assert len(known) == 30
    for step, states in enumerate(unrolled(cell, given.features, given.tokens, embedding, 2)):
        said, places = 0.0, 0
        for window in range(4):
            for place in range(2 + step, 24):
                if counted[window, place]:
                    places += 1
                    law = given.logits[window, place - 1]
                    if int(law.argmax()) in known.tolist():
                        q = cell.logits(states[window, place - 2 - step], head).log_softmax(-1)
                        said -= float((law[known].softmax(-1) * q).sum())
        total += DECAY**step * said / places
    found = unrolled_loss(cell, *shared, steps=2)
    assert float(found) == pytest.approx(total / (1 + DECAY), rel=1e-4)


@torch.no_grad()
def test_the_accepted_length_is_that_of_a_chain(target, greedy):
    """Compared with the drafter's own drafts from every place of a greedy text."""
    made, cell = student(target, greedy, steps=2)
    cell.eval()
    given = lesson(target, made, greedy[:1])
    tokens = greedy[0].tolist()
    found = accepted(
        cell,
        given.features,
        given.tokens,
        target.get_input_embeddings(),
        target.get_output_embeddings(),
        3,
    )[0].tolist()
    model = opened(target)
    for root in range(1, 20):
        reader = EagleReader(cell, model, Sampling())
        reader.learn(given.features[0, :root])
        level, right = reader.catch_up(tokens[: root + 1]), 0
        for depth in range(3):
            token = int(level.q[0].argmax())
            if token != tokens[root + 1 + depth]:
                break
            right += 1
            level = reader.grow(level.states, [token], depth, None, [()])
        assert found[root] == right, root
    assert found[0] == 0 and len(found) == 24


def test_a_draft_vocabulary_holds_the_frequent_tokens(target):
    tokens = torch.tensor([[5, 5, 5, 2], [9, 9, 2, 7]])
    chosen = most_frequent(tokens, 3, VOCABULARY)
    assert chosen.tolist() == [2, 5, 9]
    config = eagle_config(target.config, "eagle3", 3)
    cell = new_cell(config, target, chosen)
    assert cell.target_tokens.tolist() == [2, 5, 9] and cell.t2d.nonzero()[:, 0].tolist() == [
        2,
        5,
        9,
    ]
    head = target.get_output_embeddings().weight
    assert torch.equal(cell.lm_head.weight, head[chosen])
