"""DSpark: the length is decided before the token is drawn, which keeps the law; nearly right ways do not."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.methods.dspark.drafter import DSparkDrafter
from engine.methods.dspark.recipe import fitted
from engine.methods.dspark.verified_length import expected_tokens, step_costs, worth_more
from engine.rules import verifier
from tests.drafters.writing import built, steps_of
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import shared_models

EXACT, BIASED = 1e-5, 1e-3
PROMPT, DRAWN = (1, 2, 0, 1, 2), Sampling(1.0)


@pytest.fixture(scope="module")
def models():
    return shared_models(4, once=True)


@pytest.fixture(scope="module")
def stepped(models):
    """Return costs of 0 to 3 drafted tokens. The second token makes the pass a size larger, so it pays only together
    with the third, and after about half of the draws."""
    worth = []
    for seed in range(12):
        sampling = Sampling(1.0, seed=seed)
        step = steps_of(models, "dspark", PROMPT, 12, sampling, row_cost=0.001)[0]
        rows = step.tree.exhibits[1].to_dict(str)["rows"]
        tokens = expected_tokens([row[2] for row in rows])
        worth.append(tokens[3] / tokens[1])
    worth.sort()
    assert worth[0] < worth[-1]
    jump = 1.05 * (worth[5] + worth[6]) / 2
    return [1.0, 1.05, 0.999 * jump, jump]


def error(models, cls, costs=None, sampling=DRAWN, **options):
    def make():
        made = built(cls, models, **options)
        made._costs = costs or made._costs
        return made

    return step_error(models, make, verifier("rejection"), sampling, PROMPT)


@pytest.mark.parametrize("sampling", [DRAWN, Sampling(0.7, top_k=3)])
def test_a_length_that_pays_keeps_the_law(models, stepped, sampling):
    """Branch by branch; the length differs from branch to branch."""
    assert error(models, DSparkDrafter, sampling=sampling, row_cost=0.3) < EXACT
    assert error(models, DSparkDrafter, stepped, sampling) < EXACT


class BestOfAll(DSparkDrafter):
    """A fault: it draws the whole block, and then keeps the length that is best by the confidences at all places, each
    after the token drawn before it. So a token may be left out because of its own value."""

    def propose(self, context, max_depth):
        costs = self._costs
        self.settings["adaptive"] = False
        tree = super().propose(context, max_depth)
        before = torch.tensor([context[-1], *tree.tokens[:-1]])
        odds = self.heads.odds(self._block.hidden, before).tolist()
        tokens = expected_tokens([self.heads.chance(one, at) for at, one in enumerate(odds)])
        rates = [count / cost for count, cost in zip(tokens, costs, strict=False)]
        return tree.truncated(rates.index(max(rates)))


class OfTheBackbone(DSparkDrafter):
    """A fault: it declares that the tokens were drawn from the backbone's laws."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        for law, row in zip(tree.laws, self._block.logits, strict=False):
            law.copy_(row.softmax(-1))
        return tree


@pytest.mark.parametrize("cls", [BestOfAll, OfTheBackbone])
def test_nearly_right_ways_are_biased(models, stepped, cls):
    """Where costs rise evenly, the best length of all is a stopping time, too; where they jump it is not."""
    assert error(models, cls, stepped) > BIASED


def test_a_token_is_worth_its_cost_or_a_later_one_is():
    # tokens 1, 1.5, 1.95, 2.085 by hand
    assert expected_tokens([0.5, 0.9, 0.3]) == pytest.approx([1, 1.5, 1.95, 2.085])
    assert worth_more([0.5, 0.9, 0.3], 0, [1, 1.6, 1.9, 2.2])  # 1.5/1.6 does not pay, 1.95/1.9 does
    assert not worth_more([0.5, 0.9, 0.3], 2, [1, 1.6, 1.9, 2.2])
    assert not worth_more([0.5, 0.2, 0.3], 0, [1, 1.6, 1.9, 2.2])


def test_costs_lie_on_lines_between_what_was_measured():
    found = step_costs({2: 12.0, 4: 14.0, 6: 20.0}, 0.0, 8)
    assert [10 * one for one in found] == pytest.approx([10, 11, 12, 13, 14, 17, 20, 23, 26])
    assert step_costs({1: 5.0, 2: 4.0}, 0.0, 2) == [1, 1, 1]  # noise: a longer step is no cheaper
    assert step_costs({1: 5.0, 2: 9.0}, 0.5, 2) == [1, 1.5, 2]


def test_temperatures_make_the_products_come_true():
    """Log-odds that are twice as sure as the truth at the first place and half as sure at the second."""
    draw = torch.Generator().manual_seed(0)
    true = torch.randn(20_000, 2, generator=draw)
    kept = (torch.rand(true.shape, generator=draw) < true.sigmoid()).float().cumprod(-1)
    first, second = fitted(true * torch.tensor([2.0, 0.5]), kept)
    assert first == pytest.approx(2, rel=0.15) and second == pytest.approx(0.5, rel=0.15)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)])
def test_what_is_shown_is_what_decided(models, sampling):
    lengths, fates = set(), set()
    for step in steps_of(models, "dspark", PROMPT, 24, sampling, row_cost=0.3):
        if not step.tree.exhibits:
            continue  # the last token of the text leaves no room for a draft
        lengths.add(len(step.tree))
        *moved, confidences, costs = (one.to_dict(str) for one in step.tree.exhibits)
        assert len(moved) == bool(step.tree.tokens)
        rows = confidences["rows"]
        words = {"accepted": "kept", "rejected": "refused", "ignored": "not judged"}
        drafted = [row[4] for row in rows][: len(step.tree)]
        assert drafted == [words[one] for one in step.verdict.status]
        fates |= {row[4] for row in rows}
        assert costs["mark"] == len(step.tree)
        table = costs["series"][2]["y"]
        assert table == pytest.approx([1 + 0.3 * count for count in range(len(table))])
        for law in moved:
            assert all(0 <= row[2] <= 1 for row in law["rows"][1:])
    assert len(lengths) > 1 and fates >= {"kept", "refused", "not drafted"}
