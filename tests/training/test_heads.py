"""Heads in training: a few batches beat the start, and the accepted length in the recipe is that of a run."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import one_hot
from transformers import LlamaForCausalLM

from engine.methods import drafter
from engine.methods.shared.fixed_shape import cheapest_shape
from engine.methods.shared.head_ranks import FIELD, RANKS
from engine.parts.digest import FIELD as TARGET
from engine.parts.digest import digest_of
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.training.__main__ import main
from engine.training.loop import Budget, fit
from engine.training.part_recipe import accepted_length
from engine.training.student import Lesson, taught
from engine.training.students import student_class
from engine.training.students.head_students import kept_lengths
from tests.drafters.writing import steps_of, text_of
from tests.training.lessons import student_of
from tests.verifiers.tiny import tiny_models

pytestmark = pytest.mark.exhaustive

KINDS = {
    "medusa": "medusa_heads",
    "hydra": "hydra_heads",
    "clover": "clover_heads",
    "chimera": "chimera_heads",
}
KEYS = list(KINDS)
SHAPES = [
    ("medusa", {"shared": False}),
    ("medusa", {"shared": True, "layers": 2}),
    ("hydra", {"shared": False, "prefix": True}),
    ("hydra", {"shared": True, "layers": 2}),
    ("clover", {}),
    ("chimera", {}),
]


@pytest.mark.parametrize("key", KEYS)
def test_the_recipe_writes_heads_that_the_engine_opens(key, ready):
    path, given = ready
    short = ["--rows", "4", "--length", "32", "--tokens", "6144", "--option", "heads=2"]
    assert main([key, *short, *given]) == 0
    looks = json.loads((path / "run" / f"part-{key}.json").read_text())["looks"]
    assert looks[-1]["loss"] < looks[1]["loss"]
    folder = path / "models" / "parts" / key
    config = json.loads((folder / "config.json").read_text())
    assert config[TARGET] == digest_of(path / "models" / "target")
    assert [len(row) for row in config[FIELD]] == [RANKS] * 2
    module = LlamaForCausalLM.from_pretrained(path / "models" / "target")
    target = language_model(module, None, "target", lean=False)
    part = kind_of(KINDS[key]).load(str(folder), target, None, "cpu")
    assert part.accuracies == tuple(map(tuple, config[FIELD]))


@pytest.mark.parametrize("key", KEYS)
def test_trained_heads_beat_those_that_have_learned_nothing(key, tmp_path):
    """The texts count from one of 64 tokens to the next; the test uses other stretches than the training. The states
    are those of a target that does not count; its distributions are replaced by those of one that does."""
    module = plain_module(tiny_models(64))
    student = student_of(key, module, heads=2)
    torch.manual_seed(0)

    def lesson(begins, length=24):
        tokens = (torch.tensor(begins)[:, None] + torch.arange(length)) % 64
        found = taught(module, student.feature_layers, tokens, tokens >= 0)
        return replace(found, logits=20.0 * one_hot((tokens + 1) % 64, 64))

    held_out = [(1, lesson([begin], 31).tokens[0].tolist()) for begin in (5, 40)]
    probes = [lesson([begin], 31) for begin in (5, 40)]

    def accepted(part):
        student.measured(part, probes)
        return accepted_length(student, part, probes, held_out)

    part = student.start()
    before = accepted(part)
    fit(
        part,
        lambda index: (student.loss(part, lesson(range(index % 3, 64, 3))), 500),
        Budget(tokens=500 * 100),
        tmp_path / "x.pt",
        say=lambda _: None,
    )
    assert accepted(part) > before + 0.5


def plain_module(models):
    """A copy of the target's module with attention of its own."""
    module = copy.deepcopy(models.target.model)
    module.set_attn_implementation("sdpa")
    return module


@pytest.mark.parametrize(("key", "options"), SHAPES)
def test_the_accepted_length_is_that_of_a_run(key, options):
    models, prompt, count = tiny_models(16), [3, 5, 7], 40
    student = student_of(key, models.target.model, heads=3, **options)
    torch.manual_seed(3)
    part = student.start()
    with torch.no_grad():
        for weight in part.parameters():
            weight += 0.1 * torch.randn_like(weight)
    text = prompt + text_of(steps_of(models, "none", prompt, count))
    lessons = [lesson_of(models, student, text, len(prompt))]
    student.measured(part, lessons)
    read_off = accepted_length(student, part, lessons, [(len(prompt), text)])
    found = Models(models.target, {key: part.eval().requires_grad_(False)})
    budget = drafter(key).usual_size
    steps = steps_of(found, key, prompt, count, budget=budget)
    assert text_of(steps) == text[len(prompt) :]
    assert read_off == pytest.approx(count / len(steps)) and read_off > 1


def lesson_of(models, student, text, given) -> Lesson:
    """Return the lesson that ``taught`` would make. It comes from the engine's session, because the tiny module has the
    engine's attention."""
    session = models.target.session(len(text), student.feature_layers)
    logits, features = session.feed(text, range(-1, len(text) - 1))
    counted = torch.arange(len(text)) >= given
    return Lesson(torch.tensor([text]), counted[None], features[None], logits[None])


def test_a_lesson_is_what_the_target_makes_of_the_text():
    models, text = tiny_models(16), [3, 5, 7, 1]
    module = plain_module(models)
    tokens = torch.tensor([text])
    found = taught(module, (1, 2), tokens, tokens > 0, index=4)
    session = models.target.session(4, (1, 2))
    logits, features = session.feed(text, range(-1, 3))
    torch.testing.assert_close(found.features[0], features)
    torch.testing.assert_close(found.logits[0], logits)
    assert found.index == 4


def test_accuracies_are_shares_of_the_places_that_count():
    """Heads with constant predictions: the first predicts token 1, the second token 2."""

    class Constant(torch.nn.Module):
        accuracies = ()

        def __len__(self):
            return 2

    class Known(student_class("medusa")):
        def logits(self, part, head, states, lesson):
            favourites = [0.0, 2.0 - 2 * head, 1.0, 0.5]  # token 1: first, then behind 2 and 3
            return torch.tensor(favourites).expand(1, lesson.tokens.shape[1] - 2 - head, 4)

    models = tiny_models(4)
    student = Known(models.target.model, {"heads": 2, "layers": 1, "shared": False})
    tokens = torch.tensor([[0, 0, 1, 1, 2, 1]])
    counted = torch.tensor([[True] * 3 + [False] + [True] * 2])
    lesson = Lesson(tokens, counted, torch.zeros(1, 6, 1), torch.zeros(1))
    (rows,) = student.measured(Constant(), [lesson]).values()
    # the first head must predict 1 1 2 1, of which the second 1 does not count
    assert rows[0][0] == pytest.approx(2 / 3, abs=1e-4)
    assert rows[0][1] == pytest.approx(1 / 3, abs=1e-4)
    # the second head must predict 1 2 1, of which the first 1 does not count
    assert rows[1][0] == pytest.approx(1 / 2, abs=1e-4)


def test_kept_lengths_follow_the_tree():
    shape = cheapest_shape(((1.0, 2.0), (1.0, 9.0)), 3)  # first, second, first below first
    assert shape == ((-1, 0), (-1, 1), (0, 0))
    ranks = torch.tensor([[[0, 0], [0, 1], [1, 0], [2, 0], [0, RANKS]]])
    assert kept_lengths(ranks, shape).tolist() == [[2, 1, 1, 0, 1]]
