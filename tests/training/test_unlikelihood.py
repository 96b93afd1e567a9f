"""Unlearning of repetition: what counts as a repetition, and a loss that makes a planted one less likely."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.training.new_models import target_config
from engine.training.unlikelihood import (
    make_rows,
    repeats,
    rows_of_stories,
    tempting,
    unlikely_loss,
)
from tests.training.lessons import SMALL

pytestmark = pytest.mark.exhaustive


def test_repeats_complete_a_run_that_stood_before():
    text = [1, 2, 3, 4, 9, 1, 2, 3, 4, 5]
    assert repeats(text) == [8] and repeats(text, start=9) == []


def test_tempting_is_what_followed_before_and_does_not_now():
    text = [1, 2, 3, 4, 9, 1, 2, 3, 5, 1, 2, 3, 5]
    assert tempting(text) == {8: 4}


def test_the_loss_is_that_of_the_formula():
    torch.manual_seed(0)
    logits = torch.randn(6, 9)
    wanted, unwanted = torch.randint(0, 9, (2, 6))
    weights, unlikely = torch.rand(2, 6)
    loss = unlikely_loss(logits, wanted, weights, unwanted, unlikely)
    p = torch.softmax(logits, -1)
    rows = torch.arange(6)
    expected = -(weights * p[rows, wanted].log() + unlikely * (1 - p[rows, unwanted]).log()).sum()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_planted_repetition_becomes_less_likely():
    torch.manual_seed(0)
    embedding = torch.nn.Parameter(torch.randn(50, 16))
    hidden = torch.randn(4, 16)
    wanted = unwanted = torch.tensor([3, 4, 5, 6])
    weights, unlikely = torch.zeros(4), torch.ones(4)
    rows = wanted, weights, unwanted, unlikely

    def chance() -> torch.Tensor:
        return torch.softmax(hidden @ embedding.T, -1)[range(4), unwanted].detach()

    with torch.no_grad():  # planted: the model is nearly sure of them
        embedding[unwanted] = hidden
    before = chance()
    optimizer = torch.optim.SGD([embedding], 0.1)
    for _ in range(20):
        optimizer.zero_grad()
        unlikely_loss(hidden @ embedding.T, *rows).backward()
        optimizer.step()
    assert (chance() < 0.5 * before).all()


def test_rows_are_from_stories_and_of_the_models_own():
    torch.manual_seed(0)
    model = LlamaForCausalLM(target_config(64, 63, 1, **SMALL)).eval()
    stories = [torch.randint(0, 63, (80,)).tolist() for _ in range(8)]
    rows = make_rows(model, stories, 4, 63, "x")
    own, given = rows.part(slice(0, None, 2)), rows.part(slice(1, None, 2))
    assert own.weights.sum() == 0 and (given.weights.sum(1) == 80).all()
    at = own.unlikely.nonzero()
    assert len(at) > 0, "an untrained model goes in circles"
    assert all(own.unwanted[r, c] == own.tokens[r, c + 1] for r, c in at.tolist())


def test_only_what_is_wrong_is_unwanted():
    rows = rows_of_stories([[1, 2, 3, 4, 9, 1, 2, 3, 5]], 0)
    assert rows.unlikely[0].nonzero().flatten().tolist() == [7]
    assert rows.unwanted[0, 7] == 4 and rows.wanted[0, 7] == 5
