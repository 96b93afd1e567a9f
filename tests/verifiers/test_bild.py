"""Big Little Decoder: the rollback rule on hand-made p, and where its drafter stops."""

import math

import pytest
import torch

from engine.core.chance import JudgeChance
from engine.core.exhibits import Table
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.rules import Case, verifier
from tests.drafters.writing import begun
from tests.verifiers.tiny import shared_models

GREEDY = Sampling()
ROWS = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.05, 0.05, 0.9]])


def case(sampling, tokens=(0, 0)):
    """Return a case: a chain of two tokens, with ROWS as the target's probabilities after the root, the first and the
    second token."""
    tree, parent = DraftTree(), ROOT
    for token in tokens:
        parent = tree.draw(parent, token, "iid", torch.tensor([0.7, 0.2, 0.1]), "draft")
    p = ROWS if not sampling.greedy else torch.eye(3)[ROWS.argmax(-1)]
    return Case(tree, p, ROWS.log(), sampling, 7, JudgeChance(0))


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(1.0)], ids=("greedy", "sampled"))
@pytest.mark.parametrize("threshold, kept", [(0.6, 0), (0.7, 1), (2.2, 1), (2.4, 2)])
def test_the_first_token_beyond_the_threshold_is_rolled_back(sampling, threshold, kept):
    """The distances are -log .5 = .69 and -log .1 = 2.30; at temperature 0 they use the plain softmax."""
    verdict = verifier("bild", {"rollback": threshold}).judge(case(sampling))
    assert verdict.accepted == list(range(kept))
    assert verdict.final == ("bonus" if kept == 2 else "recovered")
    assert [entry.accept for entry in verdict.judgements] == [1.0] * kept + [0.0] * (kept < 2)
    assert all(entry.coin is None for entry in verdict.judgements)
    if sampling.greedy:
        assert verdict.final_token == ROWS[kept].argmax()
    (table,) = verdict.exhibits
    assert isinstance(table, Table) and len(table.rows) == len(verdict.judgements)
    assert table.rows[0][1] == pytest.approx(0.7)
    assert table.rows[0][3] == pytest.approx(-math.log(0.5), rel=1e-5)


def test_a_token_that_the_target_cannot_write_is_rolled_back():
    given = case(Sampling(1.0))
    given.p[0] = torch.tensor([0.0, 1.0, 0.0])
    verdict = verifier("bild", {"rollback": 50.0}).judge(given)
    assert (verdict.accepted, verdict.final_token) == ([], 1)
    (table,) = verdict.exhibits
    assert table.to_dict(str)["rows"][0][3] is None, "an infinite distance has no number in JSON"


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(0.9, seed=2)], ids=("greedy", "sampled"))
def test_the_small_model_stops_before_the_place_where_it_is_unsure(sampling):
    """And it stops only there, unless the step is full."""
    models, fallback = shared_models(16), 0.35
    context, stopped, options = [3, 5, 7, 3, 5], 0, {"fallback": fallback, "length": 4}
    for step in begun(models, "bild", list(context), 40, sampling, "bild", **options):
        tokens = step.tree.tokens
        tops = []
        for count in range(len(tokens) + 1):
            logits = models.part("draft").session(64).extend([*context, *tokens[:count]])
            if sampling.greedy:
                tops.append(float(logits.softmax(-1).max()))
            else:
                tops.append(float((logits / sampling.temperature).softmax(-1).max()))
        assert all(top >= fallback for top in tops[: len(tokens)])
        room = len(context) + 1 + len(tokens) == 45
        assert len(tokens) == 4 or room or tops[-1] < fallback
        stopped += len(tokens) < 4
        context += step.output
    assert stopped
