"""EAGLE's training: the trained computation is what drafts, and a trained cell drafts longer than an untrained one."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
import torch.nn.functional as F

from engine.core.sampling import Sampling
from engine.methods.eagle.part import KIND
from engine.methods.shared.eagle_reader import EagleReader
from engine.parts.digest import FIELD
from engine.parts.loading import Models
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
from engine.training.student import taught
from tests.drafters.writing import usual
from tests.training.lessons import (
    VOCABULARY,
    greedy_text,
    learn_own_text,
    lesson,
    opened,
    own_text,
    student_of,
    tiny_target,
    written,
)

pytestmark = pytest.mark.exhaustive


def begun(key="eagle", **settings):
    """Return a student, and its cell before the first lesson."""
    made = student_of(key, tiny_target(), **settings)
    made.prepare(own_text())
    torch.manual_seed(0)
    return made, made.start()


SETTINGS = {
    "features": {},
    "tested": {"steps": 3},
    "eagle3": {"layout": "eagle3", "steps": 3, "vocabulary": 30},
    "speculators": {"layout": "speculators"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_trained_cell_drafts_longer(name, target, tmp_path):
    """Measured by teacher forcing, and in a run of the drafter with the part as it was saved."""
    made, cell = begun(**SETTINGS[name])
    judged = lesson(made, greedy_text())
    untrained = made.accepted(cell, judged).float().mean()
    made.save(cell, tmp_path / "before", {})
    learn_own_text(made, cell, 60, 3e-3, 48, 12)
    made.save(cell, tmp_path / "after", {FIELD: "0123"})
    assert made.accepted(cell, judged).float().mean() > untrained + 0.8
    before, after = (drafted(target, tmp_path / one) for one in ("before", "after"))
    assert len(after) < len(before), "the same text in fewer steps"
    assert [*itertools.chain(*after)] == [*itertools.chain(*before)]
    assert json.loads((tmp_path / "after" / "config.json").read_text())[FIELD] == "0123"


def drafted(target, folder) -> list[list[int]]:
    """Return the output of each step of a few texts, drafted in chains by the part in this folder."""
    model = opened(target)
    models = Models(model, {"eagle": KIND.load(str(folder), model, torch.float32, "cpu")})
    return written(model, usual("eagle", models, top_k=1, nodes=4, stop_below=0.0))


@torch.no_grad()
@pytest.mark.parametrize("layout", ["eagle", "eagle3"])
def test_what_is_unrolled_is_what_drafts(layout, target):
    made, cell = begun(layout=layout)
    cell.eval()
    given = lesson(made, own_text()[:1])
    steps = list(
        unrolled(cell, given.features, given.tokens, target.get_input_embeddings(), steps=3)
    )
    model, tokens = opened(target), own_text()[0].tolist()
    for row in (0, 1, 7, 15):
        reader = EagleReader(cell, model, Sampling())
        reader.learn(given.features[0, : row + 1])
        level = reader.catch_up(tokens[: row + 2])
        torch.testing.assert_close(level.states[0], steps[0][0, row], atol=1e-4, rtol=1e-4)
        for step in (1, 2):
            level = reader.grow(level.states, [tokens[row + 1 + step]], step - 1, None, [()])
            torch.testing.assert_close(level.states[0], steps[step][0, row], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_losses_are_those_of_the_papers(target):
    """The expected losses are computed row by row, from the cell's output at each row."""
    embedding, head = target.get_input_embeddings(), target.get_output_embeddings()
    counted = torch.rand(4, 24, generator=torch.Generator().manual_seed(1)) > 0.4
    made, cell = begun()
    given = lesson(made, own_text()[:4])
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

    made, cell = begun(layout="eagle3", vocabulary=30)
    given = taught(target, made.feature_layers, own_text()[:4], counted)
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
def test_the_accepted_length_is_that_of_a_chain(target):
    """Compared with the drafter's own drafts from every place of a greedy text."""
    made, cell = begun(steps=2)
    cell.eval()
    given = lesson(made, greedy_text()[:1])
    tokens = greedy_text()[0].tolist()
    shared = given.features, given.tokens, target.get_input_embeddings()
    found = accepted(cell, *shared, target.get_output_embeddings(), 3)[0].tolist()
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
    assert cell.target_tokens.tolist() == cell.t2d.nonzero()[:, 0].tolist() == [2, 5, 9]
    head = target.get_output_embeddings().weight
    assert torch.equal(cell.lm_head.weight, head[chosen])
