"""Heads on a block drafter's states: they learn what a token makes of the next place, drafts are counted as a run makes them,
and files are read as written."""

import pytest
import torch

from engine.core.options import resolve
from engine.errors import UserError
from engine.methods.dspark.part import TEMPERATURES
from engine.methods.shared.dflash_model import DFlashModel
from engine.training.diffusion import diffusion_config, start_from
from engine.training.students import student_class
from tests.training.lessons import (
    agreeing,
    greedy_text,
    learn_own_text,
    lesson,
    own_text,
    tiny_target,
)

MASK = 0


def student(key, **changes):
    target = tiny_target()
    config = diffusion_config(
        target.config, MASK, layers=1, block_size=4, feature_layers=(0, 1, 2), **changes
    )
    torch.manual_seed(0)
    denoiser = DFlashModel(config)
    start_from(denoiser, target)
    cls = student_class(key)
    settings = resolve("x", cls.options, {"rank": 8})
    return cls(target, settings, denoiser.eval().requires_grad_(False), "0123")


@pytest.mark.parametrize("key", ["dspark", "lattice"])
def test_it_learns_and_drafts_are_counted_as_runs_make_them(key, tmp_path):
    made = student(key)
    part, held_out = made.start(), lesson(made, own_text()[40:], 99)
    with torch.no_grad():
        before = made.loss(part, held_out)
    learn_own_text(made, part, 40)
    with torch.no_grad():
        assert made.loss(part, held_out) < 0.9 * before
    given = lesson(made, greedy_text()[:4])
    found = made.accepted(part, given)
    embedding, head = made.target.get_input_embeddings(), made.target.get_output_embeddings()
    for row in range(2):
        text = given.tokens[row].tolist()
        for root in range(1, 20):
            block = embedding(torch.tensor([text[root], MASK, MASK, MASK]))[None, None]
            hidden = made.denoiser(given.features[row : row + 1], block, torch.tensor([[root]]))
            drafted = [torch.tensor(text[root])]
            for state in hidden[0, 0, 1:]:
                scores = head(state)
                if key == "dspark":
                    scores = scores + part.bias(drafted[-1])
                else:
                    few = scores.topk(16).indices
                    added = part.transitions(state, drafted[-1], few)
                    scores = torch.full_like(scores, -1e9).index_copy(0, few, scores[few] + added)
                drafted.append(scores.argmax())
            assert found[row, root] == agreeing(drafted[1:], text[root + 1 :])
    told = made.measured(part, [lesson(made, greedy_text()[:1])])
    made.save(part, tmp_path / key, told)
    opened = type(part).read(tmp_path / key)
    assert opened.denoiser_digest == "0123"
    for name, weight in part.state_dict().items():
        torch.testing.assert_close(opened.state_dict()[name], weight, atol=0.05, rtol=0.02)
    if key == "dspark":
        assert opened.temperatures == told[TEMPERATURES] and len(opened.temperatures) == 3


def test_a_head_that_is_cut_is_refused():
    with pytest.raises(UserError, match="whole head"):
        student("dspark", known=7)


def test_heads_of_another_drafter_are_refused(tmp_path):
    """By the digest of its file, where it is opened from one."""
    made = student("dspark")
    made.denoiser.save(tmp_path / "diffusion", {})
    part = made.start()
    part.check(made.denoiser, None)
    with pytest.raises(UserError, match="trained for another diffusion drafter"):
        part.check(made.denoiser, str(tmp_path / "diffusion"))
