"""The foreign draft in training: windows as runs, the hybrid loss, the accepted length, and that it learns."""

import itertools

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.methods.shared.spelling import Spelling
from engine.training.new_models import draft_config
from tests.training.lessons import (
    SMALL,
    VOCABULARY,
    greedy_text,
    learn_own_text,
    lesson,
    own_text,
    student_of,
    tiny_target,
)

pytestmark = pytest.mark.exhaustive

KNOWN = 20
PAIRS = itertools.islice(itertools.product(range(KNOWN), repeat=2), VOCABULARY - KNOWN)
SPELLING = Spelling((*((one,) for one in range(KNOWN)), *PAIRS), tuple("x" * KNOWN))


def student(**options):
    return student_of("omnidraft", tiny_target(), None, SPELLING, **options)


def draft():
    torch.manual_seed(5)
    return LlamaForCausalLM(draft_config(KNOWN, 0, 1, **SMALL))


def test_windows_are_written_as_runs():
    tokens = torch.tensor([[3, 20, 7], [4, 5, 6]])  # 20 is the run 0, 0
    counted = torch.tensor([[True, True, True], [True, False, True]])
    text = student().written(tokens, counted)
    assert text.tokens.tolist() == [[3, 0, 0, 7], [4, 5, 6, 0]]
    assert text.first.tolist() == [[0, 1, 3], [0, 1, 2]]
    assert text.inside.tolist() == [[False, False, True, False], [False] * 4]
    assert text.counted.tolist() == text.inside.tolist()


@torch.no_grad()
def test_the_loss_is_the_target_s_law_at_beginnings_and_likelihood_inside():
    made, part = student(runs=0.5), draft().eval()
    given = lesson(made, own_text()[:2])
    total, count = 0.0, 0
    for row, logits in zip(given.tokens, given.logits, strict=True):
        runs = [SPELLING.runs[int(one)] for one in row]
        for place, run in enumerate(runs):
            before = [one for run in runs[:place] for one in run]
            for inner, one in enumerate(run[1:], start=1):
                q = part(torch.tensor([[*before, *run[:inner]]])).logits[0, -1]
                total -= 0.5 * float(q.log_softmax(-1)[one])
            if place:
                p = torch.zeros(KNOWN)
                for token, weight in enumerate(logits[place - 1].softmax(-1)):
                    p[SPELLING.runs[token][0]] += weight
                q = part(torch.tensor([before])).logits[0, -1].log_softmax(-1)
                total += float((p * (p.clamp(min=1e-12).log() - q)).sum())
                count += 1
    assert made.loss(part, given).item() == pytest.approx(total / count, rel=1e-3)


def test_it_learns_and_a_token_is_right_when_its_whole_run_is():
    made, part = student(), draft()
    before = made.measured(part, [lesson(made, own_text()[40:])])
    learn_own_text(made, part, 50)
    after = made.measured(part, [lesson(made, own_text()[40:])])
    first = "first_kept_at_temperature_1"
    assert after[first] > before[first] + 0.02 and after["one_to_one"] == KNOWN
    text = greedy_text()[:4]
    found = made.accepted(part, lesson(made, text))
    for row, tokens in zip(found, text.tolist(), strict=True):
        right = []
        for place in range(1, len(tokens)):
            given = SPELLING.spelled(tokens[:place])
            for one in SPELLING.runs[tokens[place]]:
                best = int(part(torch.tensor([given])).logits[0, -1].argmax())
                given.append(one)
                if best != one:
                    right.append(False)
                    break
            else:
                right.append(True)
        runs = [
            list(itertools.takewhile(bool, right[place : place + 4])) for place in range(len(right))
        ]
        assert row[:-1].tolist() == [len(run) for run in runs]
    assert int(found.sum()) > 0
