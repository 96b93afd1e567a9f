"""DEER: the cached reading, the two stages of its alignment, its accepted length, its files."""

import pytest
import torch

from engine.errors import UserError
from engine.methods.deer.part import ReadText
from engine.parts.kinds import kind_of
from tests.training.lessons import (
    VOCABULARY,
    agreeing,
    greedy_text,
    learn_own_text,
    lesson,
    own_text,
    student_of,
    tiny_target,
)

pytestmark = pytest.mark.exhaustive

BLOCK = 4


@pytest.fixture
def student():
    torch.manual_seed(0)
    return student_of("deer", tiny_target(), layers=2, block=BLOCK, alpha=2.0)


def test_reading_bit_by_bit_is_reading_at_once(student):
    """A run's cached passes are compared with the training's forward pass over the whole text."""
    part, tokens = student.start().eval(), own_text()[0]
    read = ReadText(part)
    read.read(tokens[:3])
    at = 3
    for new, count in ((1, 4), (3, 2), (0, 3), (5, 4)):
        logits = read.fill(tokens[at : at + new], count)
        at += new
        anchors = torch.tensor([[at - 1, 1]])
        blocks = part.block(count, tokens.device).expand(1, 2, -1)
        expected = part(tokens[None], anchors, blocks)[0, 0]
        assert torch.allclose(logits, expected, atol=1e-4) and read.length == at


def test_the_two_stages_mask_and_weigh_as_told(student):
    part, given = student.start(), lesson(student, own_text()[:8], 3)
    anchors = torch.arange(0, 18, 3).expand(8, -1)
    config = part.config
    text = torch.stack([given.tokens[:, a + 1 : a + 1 + BLOCK] for a in range(0, 18, 3)], 1)
    blocks, weights = student.lessons(config, given, anchors)
    assert (blocks[..., 0] == config.separator).all()
    masked = blocks[..., 1:] == config.mask
    assert torch.equal(blocks[..., 1:][~masked], text[~masked])
    assert 0.3 < masked.float().mean() < 0.9 and torch.equal(weights > 0, masked)
    by_block = weights.flatten(0, 1)
    for row in by_block[(by_block > 0).sum(-1) > 1]:
        assert len(set(row[row > 0].tolist())) == 1, "a block counts by its share"
    student.reach(0.5)
    assert not student.refining
    student.reach(0.625)
    blocks, weights = student.lessons(config, given, anchors)
    assert (blocks[..., 1:] == config.mask).all()
    assert torch.allclose(weights, torch.tensor([1.0, 0.5, 0.25, 0.125]).expand_as(weights))


def test_it_learns_in_both_stages_and_is_read_as_it_was_written(student, tmp_path):
    part = student.start()
    held_out = lesson(student, own_text()[40:], 999)
    for done in (0.0, 0.75):
        student.reach(done)
        with torch.no_grad():
            before = float(student.loss(part, held_out))
        learn_own_text(student, part, 12, 5e-3, 40, 40)
        with torch.no_grad():
            assert float(student.loss(part, held_out)) < 0.97 * before
    given = lesson(student, greedy_text()[:2])
    found = student.accepted(part.eval(), given)
    for row, root in ((0, 2), (1, 9), (0, 21)):
        read = ReadText(part)
        guess = read.fill(given.tokens[row, : root + 1], BLOCK).argmax(-1)
        assert found[row, root] == agreeing(guess, given.tokens[row, root + 1 :])
    student.save(part, tmp_path / "deer", {})
    load = kind_of("diffusion_lm").load

    class Target:
        vocab_size, name = VOCABULARY, "tiny"

    opened = load(str(tmp_path / "deer"), Target, None, "cpu")
    tokens = own_text()[0]
    same = [ReadText(one).fill(tokens, BLOCK).softmax(-1) for one in (part, opened)]
    assert torch.allclose(*same, atol=0.05)
    Target.vocab_size = 50
    with pytest.raises(UserError, match="has 48 tokens, tiny 50"):
        load(str(tmp_path / "deer"), Target, None, "cpu")
    (tmp_path / "deer" / "config.json").write_text('{"vocab_size": 48, "head_dim": "much"}')
    with pytest.raises(UserError, match="cannot be opened: its "):
        load(str(tmp_path / "deer"), Target, None, "cpu")
