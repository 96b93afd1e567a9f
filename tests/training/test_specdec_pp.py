"""The acceptance head in training: its labels, its loss, its accepted length, and that it learns."""

import copy

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.parts.kinds import kind_of
from engine.training.new_models import target_config
from engine.training.student import taught
from tests.training.lessons import learn, student_of

pytestmark = pytest.mark.exhaustive

SMALL = {
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 12,
}
VOCABULARY, WINDOWS, LENGTH = 24, 3, 40


@pytest.fixture(scope="module")
def pair():
    """Return a target, and a draft that is the target with noise."""
    torch.manual_seed(0)
    target = LlamaForCausalLM(target_config(VOCABULARY, 0, 2, **SMALL))
    with torch.no_grad():
        for weight in target.parameters():
            if weight.ndim == 2:
                weight.normal_(0, 0.4)
        draft = copy.deepcopy(target)
        for weight in draft.parameters():
            weight += 0.15 * torch.randn_like(weight)
    return target.eval().requires_grad_(False), draft.eval().requires_grad_(False)


def student(pair, **options):
    return student_of("specdec_pp", *pair, "0123", **options)


def lesson(pair, index=0, tokens=None):
    if tokens is None:
        draw = torch.Generator().manual_seed(index)
        tokens = torch.randint(VOCABULARY, (WINDOWS, LENGTH), generator=draw)
    counted = torch.arange(tokens.shape[1]).expand(tokens.shape) >= 5
    return taught(pair[0], (2,), tokens, counted, index)


def test_labels_are_the_chances_with_which_the_target_keeps_the_drafts_tokens(pair):
    given = lesson(pair, 3)
    mixed, chance, counts = student(pair, mixing=0.3)._mixed(given)
    p = given.logits.softmax(-1)
    q = pair[1](given.tokens).logits.softmax(-1)
    own = 0
    for row in range(WINDOWS):
        for place in range(1, LENGTH):
            token = mixed[row, place]
            kept = min(1.0, float(p[row, place - 1, token] / q[row, place - 1, token]))
            if counts[row, place]:
                assert chance[row, place] == pytest.approx(kept, rel=1e-3)
            elif place >= 5:
                own += 1
                assert token == given.tokens[row, place]
    assert not counts[:, :5].any() and torch.equal(mixed[:, 0], given.tokens[:, 0])
    assert 0.15 < own / (WINDOWS * (LENGTH - 5)) < 0.45
    again = student(pair, mixing=0.3)._mixed(given)
    assert torch.equal(again[0], mixed), "the same batch has the same tokens"


def test_favourites_are_kept_where_they_are_the_targets(pair):
    given = lesson(pair, 3)
    mixed, chance, counts = student(pair)._mixed(given, favourites=True)
    theirs = given.logits[:, :-1].argmax(-1)
    mine = pair[1](given.tokens).logits[:, :-1].argmax(-1)
    places = counts[:, 1:]
    assert torch.equal(mixed[:, 1:][places], mine[places])
    assert torch.equal(chance[:, 1:][places], (mine == theirs)[places].float())
    assert 0 < chance[:, 1:][places].mean() < 1


@pytest.mark.parametrize(("share", "of_ten"), [(0.0, 0), (0.3, 3), (0.5, 5), (1.0, 10)])
def test_a_share_of_the_lessons_is_about_favourites(pair, share, of_ten):
    asked = student(pair, greedy=share)
    assert sum(map(asked._of_favourites, range(10))) == of_ten


def test_a_refused_token_counts_several_times(pair):
    """A head that says one number for all tokens has its lowest loss at the weighted share, not at the plain share."""
    given = lesson(pair, 1)
    asked = student(pair, rejected_weight=6.0, layers=0, greedy=0.0)
    _, chance, counts = asked._mixed(given)
    kept = float((chance * counts).sum() / counts.sum())
    part = asked.start()
    with torch.no_grad():
        part.out.weight.zero_()

    def loss(predicted):
        with torch.no_grad():
            odds = torch.tensor(predicted).logit()
            part.out.bias.copy_(torch.stack([torch.zeros(()), odds]))
            return float(asked.loss(part, given))

    best = kept / (kept + 6 * (1 - kept))
    assert loss(best) < min(loss(best * 0.9), loss(best * 1.1), loss(kept))


def test_the_accepted_length_is_that_of_chains_that_stop(pair):
    """Compared with a chain written token by token."""
    target, draft = pair
    prompt = torch.tensor([[3, 5, 7, 2]])
    text = target.generate(prompt, max_new_tokens=20, do_sample=False, eos_token_id=None)
    asked = student(pair)
    part = asked.start()
    with torch.no_grad():
        part.out.weight.normal_(0, 0.3)
        part.out.bias.copy_(torch.tensor([-1.5, 1.0]))
    found = asked.accepted(part, lesson(pair, tokens=text))[0].tolist()
    tokens = text[0].tolist()
    for root in range(3, len(tokens) - 1):
        count, kept = 0, 1.0
        while root + count + 1 < len(tokens) and count < 16:
            out = draft(torch.tensor([tokens[: root + count + 1]]), output_hidden_states=True)
            if int(out.logits[0, -1].argmax()) != tokens[root + count + 1]:
                break
            count += 1
            read = torch.tensor([tokens[: root + count + 1]])
            state = draft(read, output_hidden_states=True).hidden_states[-1][0, -1]
            kept *= part.chance(state)
            if 1 - kept > 0.7:
                break
        assert found[root] == count
    assert 0 < sum(found)


def test_it_learns_and_is_written_as_the_loader_reads_it(pair, tmp_path):
    asked = student(pair, layers=1, rejected_weight=1.0)
    torch.manual_seed(1)
    part = asked.start()

    def error(lessons):
        with torch.no_grad():
            graded = [asked.graded(part, one) for one in lessons]
        gaps = [(g.odds.sigmoid() - g.chance)[g.counts].abs() for g in graded]
        return float(torch.cat(gaps).mean())

    held_out = [lesson(pair, 1000 + index) for index in range(4)]
    before = error(held_out)
    learn(lambda index: asked.loss(part, lesson(pair, index)), part, 150)
    assert error(held_out) < 0.9 * before
    figures = asked.measured(part, held_out)
    assert sum(figures["calibration_counts"]) == sum(
        int(asked._mixed(x)[2].sum()) for x in held_out
    )
    asked.save(part, tmp_path / "head", figures)
    opened = kind_of("acceptance_head").load(str(tmp_path / "head"), None, None, "cpu")
    assert (opened.draft_digest, opened.rejected_weight, opened.width) == ("0123", 1.0, 24)
