"""The nested draft in training: each sub-model is a draft by itself, and all of them learn."""

import pytest
import torch

from tests.training.lessons import learn_own_text, lesson, own_text, student_of, tiny_target

pytestmark = pytest.mark.exhaustive


class EndsWithZero:
    eos_token_id = 0


def test_all_exits_learn_and_are_the_first_layers():
    made = student_of("s2d", tiny_target(), EndsWithZero, None)
    assert made.exits == (1, 2, 4)
    torch.manual_seed(0)
    part = made.start()
    held_out = [lesson(made, own_text()[40:])]
    before = made.measured(part, held_out)["kept_by_exit"]
    learn_own_text(made, part, 40)
    found = made.measured(part, held_out)
    assert all(found["kept_by_exit"][one] > before[one] + 0.02 for one in ("1", "2", "4"))
    assert found["kept_by_exit"]["4"] == found["after"]["kept_at_temperature_1"]
    tokens = own_text()[:2]
    logits = made.logits(part, tokens)
    part.model.layers = part.model.layers[:2]
    torch.testing.assert_close(logits[1], part(input_ids=tokens, use_cache=False).logits)
