"""Falcon's training: lengths and losses are those of the paper, and glances are unbroken runs of the true text."""

import pytest
import torch
import torch.nn.functional as F

from engine.methods.falcon.falcon_context import FalconContext
from engine.methods.falcon.falcon_training import SOFT, accepted, block_loss, glances, through
from engine.training.cell_training import FEATURES, TOKENS
from tests.training.lessons import agreeing, begun, greedy_text, lesson, own_text
from tests.training.test_learning import trained

pytestmark = pytest.mark.exhaustive


@torch.no_grad()
def test_the_accepted_length_is_that_of_a_block(target):
    with torch.enable_grad():
        made, cell, _ = trained("falcon, 2")
    given = lesson(made, greedy_text()[:2])
    embedding, head = target.get_input_embeddings(), target.get_output_embeddings()
    found = accepted(cell, given.features, given.tokens, embedding, head)
    assert found.any()
    for window in range(2):
        tokens = greedy_text()[window]
        for root in range(2, 20):
            context = FalconContext(cell)
            states = context.read(given.features[window, :root], embedding(tokens[1 : root + 1]))
            assert found[window, root] == agreeing(head(states).argmax(-1), tokens[root + 1 :])


@torch.no_grad()
def test_without_a_wrong_token_both_passes_are_the_papers_loss(target, monkeypatch):
    """With everything glanced at, the second pass equals the first, and the loss is that of one pass."""
    made, cell = begun("falcon")
    given = lesson(made, own_text()[:3])
    shared = (target.get_input_embeddings(), target.get_output_embeddings())
    monkeypatch.setattr(
        "engine.methods.falcon.falcon_training.glances", lambda wrong, index: torch.ones_like(wrong)
    )
    arguments = (given.features, given.tokens, given.logits, given.counted)
    found = block_loss(cell, *arguments, *shared, index=1)
    embedded = shared[0](given.tokens[:, 1:])
    states = through(cell, given.features[:, :-1], embedded, 1)
    near, said = [], []
    for window in range(3):
        for row in range(given.tokens.shape[1] - 3):
            near.append(F.smooth_l1_loss(states[window, row], given.features[window, row + 2]))
            p = given.logits[window, row + 2].softmax(-1)
            q = shared[1](states[window, row]).log_softmax(-1)
            soft = (p * (p.log() - q)).sum()
            said.append(SOFT * soft - (1 - SOFT) * q[p.argmax()])
    expected = FEATURES * torch.stack(near).mean() + TOKENS * torch.stack(said).mean()
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


def test_glances_are_one_run_as_long_as_a_share_of_the_wrong():
    wrong = torch.zeros(3, 40, dtype=torch.bool)
    wrong[0, ::2] = True
    wrong[1] = True
    shown = [glances(wrong, index, 0.25) for index in range(30)]
    for one in shown:
        assert one.sum(-1).tolist() == [5, 10, 0]
        changes = (one[:, 1:] != one[:, :-1]).sum(-1)
        assert changes.max() <= 2, "in one piece"
    begins = {int(one[1].int().argmax()) for one in shown}
    assert len(begins) > 10
