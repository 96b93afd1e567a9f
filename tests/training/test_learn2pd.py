"""The filter of Learn2PD: the oracle that it learns from, drafts as a run would make them, and its files."""

from itertools import pairwise

import pytest
import torch

from engine.errors import UserError
from engine.methods.learn2pd.drafter import LearnedFilter
from engine.methods.learn2pd.part import check_denoiser
from engine.methods.learn2pd.recipe import FilterStudent, Pass
from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.unmasking import Canvas, fill_in
from engine.parts.kinds import kind_of
from engine.training.diffusion import diffusion_config, start_from
from tests.training.lessons import agreeing, greedy_text, learn, lesson, own_text, student_of

pytestmark = pytest.mark.exhaustive

MASK = 0


@pytest.fixture(scope="module")
def student(target):
    config = diffusion_config(target.config, MASK, layers=1, block_size=4, feature_layers=(0, 1, 2))
    torch.manual_seed(0)
    denoiser = DFlashModel(config)
    start_from(denoiser, target)
    return student_of("learn2pd", target, denoiser.eval().requires_grad_(False), "0123")


def divided(student, given):
    """Return a filter that passes about half of the places: those with a confidence above the median."""
    anchors = torch.tensor([[3, 9]]).expand(len(given.tokens), -1)
    first = next(student.passes(given, anchors, lambda seen: seen.filled))
    part, places = student.start(), student.places
    with torch.no_grad():
        part.fc1.weight.copy_(torch.eye(places))
        part.fc2.weight.copy_(1000 * torch.eye(places))
        part.fc1.bias.zero_()
        part.fc2.bias.fill_(-1000 * float(first.values.median()))
    return part


def test_the_oracle_fills_what_is_right_and_else_the_surest_place(student):
    given = lesson(student, own_text())
    anchors = torch.tensor([[0, 3, 9]]).expand(48, -1)
    text = student.behind(anchors, given.tokens)
    assert torch.equal(text[1, 2], given.tokens[1, 10:13])
    passes = list(student.passes(given, anchors, lambda seen: seen.tokens == text))
    assert not passes[0].filled.any()
    some = 0
    for before, after in pairwise(passes):
        right = (before.tokens == text) & ~before.filled
        now = after.filled & ~before.filled
        for row in range(48):
            for block in range(3):
                if right[row, block].any():
                    assert torch.equal(now[row, block], right[row, block])
                    some += 1
                else:
                    assert now[row, block].sum() == 1 or before.filled[row, block].all()
    assert some


def test_the_accepted_length_is_that_of_a_runs_blocks(student):
    given = lesson(student, greedy_text()[:2])
    part = divided(student, given)
    found = student.accepted(part, given)
    embedding, head = student.target.get_input_embeddings(), student.target.get_output_embeddings()
    turns = set()
    for row in range(2):
        for root in range(1, 20):

            def read(canvas, row=row, root=root):
                block = [int(given.tokens[row, root]), MASK, MASK, MASK]
                for place, token in canvas.tokens.items():
                    block[place + 1] = token
                rows = embedding(torch.tensor(block))[None, None]
                features = given.features[row : row + 1]
                hidden = student.denoiser(features, rows, torch.tensor([[root]]))[0, 0, 1:]
                return head(hidden).softmax(-1)

            canvas = Canvas(3)
            fill_in(canvas, LearnedFilter(part, 0.9), read, 3)
            turns.add(canvas.turns)
            drafted = [canvas.filled[place].token for place in range(3)]
            assert found[row, root] == agreeing(drafted, given.tokens[row, root + 1 :])
    assert len(turns) > 1


class Plain(FilterStudent):
    """A student with made-up blocks, in which exactly the places with a confidence above 0.4 are right."""

    def passes(self, lesson, anchors, choose):
        draw = torch.Generator().manual_seed(lesson.index)
        text = self.behind(anchors, lesson.tokens)
        values = torch.rand(text.shape, generator=draw)
        filled = torch.rand(text.shape, generator=draw) < 0.2
        yield Pass(values, torch.where(values > 0.4, text, text + 1), filled)


def test_it_learns_which_places_are_right_and_is_read_as_written(student, tmp_path):
    plain = Plain(student.target, student.settings, student.denoiser, "0123")
    torch.manual_seed(1)
    part = plain.start()
    tokens = own_text()[:16]
    given = [lesson(student, tokens, index) for index in range(4)]
    learn(lambda step: plain.loss(part, given[step % 3]), part, 120, 3e-2)
    told = plain.measured(part, given[3:])
    assert 0.5 < told["right"] < 0.7 and told["precision"] > 0.95 and told["recall"] > 0.4
    plain.save(part, tmp_path / "filter", told)
    opened = kind_of("unmasking_filter").load(str(tmp_path / "filter"), None, None, "cpu")
    assert (opened.places, opened.denoiser_digest) == (3, "0123")
    values = torch.tensor([0.9, 0.2])
    assert torch.allclose(opened.chance(values), part.chance(values), atol=0.05)
    check_denoiser(opened, 3, None)
    with pytest.raises(UserError, match="another diffusion drafter"):
        check_denoiser(opened, 7, None)
    with pytest.raises(UserError, match="no unmasking filter to open"):
        kind_of("unmasking_filter").load(str(tmp_path), None, None, "cpu")
