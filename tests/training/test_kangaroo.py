"""The adapter of Kangaroo in training, on a tiny target: it learns, and its accepted length is that of real runs."""

import pytest
import torch

from engine.errors import UserError
from engine.methods.kangaroo.part import KIND
from engine.parts.loading import Models
from engine.training.part_recipe import accepted_length
from tests.drafters.writing import steps_of, text_of, usual
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.training.lessons import learn, lesson, student_of

pytestmark = pytest.mark.exhaustive

PROMPTS = ([5, 9, 2, 40, 7], [30, 3, 8, 8, 21])
WRITTEN = 48


@pytest.fixture(scope="module")
def target():
    return tiny_model("llama")


@pytest.fixture(scope="module")
def module():
    """Return the same weights, read with transformers only, as a recipe reads them."""
    return tiny_hf_model("llama").requires_grad_(False)


def test_it_begins_as_the_early_exit(target, module):
    student = student_of("kangaroo", module)
    given = lesson(student, torch.tensor([[5, 9, 2, 40]]))
    found = student.logits(student.start(), given)
    torch.testing.assert_close(found, target.head(target.norm(given.features)))


def texts_of(target, drafter):
    """Return the target's greedy texts, written with this drafter: (start, tokens), and the number of steps of each
    text."""
    texts, steps = [], []
    for prompt in PROMPTS:
        taken = steps_of(Models(target), drafter, prompt, WRITTEN)
        texts.append((len(prompt), [*prompt, *text_of(taken)]))
        steps.append(len(taken))
    return texts, steps


def test_it_learns_and_its_accepted_length_is_that_of_a_run(target, module, tmp_path):
    torch.manual_seed(0)
    student = student_of("kangaroo", module, exit_layer=1)
    part = student.start()
    tokens = torch.randint(61, (64, 24))
    batches = tokens.split(8)
    losses = learn(lambda index: student.loss(part, lesson(student, batches[index % 8])), part, 60)
    assert sum(losses[-8:]) < 0.9 * sum(losses[:8])
    student.save(part, tmp_path, {"epochs": 7})
    saved = KIND.load(str(tmp_path), target, None, "cpu")
    drafter = usual("kangaroo", Models(target, {"kangaroo": saved}))
    texts, steps = texts_of(target, drafter)
    lessons = [lesson(student, torch.tensor([text])) for _, text in texts]
    found = accepted_length(student, saved, lessons, texts)
    assert found == pytest.approx(sum(WRITTEN / count for count in steps) / len(steps))
    assert found > 1.05


def test_what_is_not_counted_is_not_learned(module):
    student = student_of("kangaroo", module)
    part = student.start()
    tokens = torch.randint(61, (2, 12))
    counted = torch.ones_like(tokens, dtype=torch.bool)
    counted[:, 6:] = False
    other = tokens.clone()
    other[:, 6:] = 1
    losses = [student.loss(part, lesson(student, one, counted=counted)) for one in (tokens, other)]
    torch.testing.assert_close(*losses)
    assert losses[0] > 0


def test_an_adapter_behind_all_layers_is_refused(module):
    with pytest.raises(UserError, match="leaves none to verify"):
        student_of("kangaroo", module, exit_layer=3)
