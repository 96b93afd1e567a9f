"""Acceptance by clusters: the exact rule for clusters of one, and a price that is the output's true distance from p."""

import pytest
import torch

from engine.core.rule import Case
from engine.core.sampling import Sampling
from engine.core.tree import DraftTree
from engine.methods import drafter
from engine.rules import verifier
from engine.rules.gsd import Clusters
from tests.verifiers.step_errors import step_error
from tests.verifiers.test_pairs import maker
from tests.verifiers.tiny import remembered_models

P = torch.tensor([0.30, 0.26, 0.20, 0.14, 0.07, 0.03], dtype=torch.float64)
Q = torch.tensor([0.05, 0.45, 0.05, 0.30, 0.05, 0.10], dtype=torch.float64)


class Coin:
    def __init__(self, coin):
        self.coin = coin

    def toss(self):
        return self.coin

    def draw(self, p, position):
        return int(p.argmax())


def judged(rule, token, coin, law=Q):
    tree = DraftTree()
    tree.draw(-1, token, "one_hot" if law is None else "iid", law)
    p = torch.stack([P, P])
    case = Case(tree, p.float(), p.log().float(), Sampling(1.0), 0, Coin(coin))
    return rule.judge(case)


@pytest.mark.parametrize("group, spread", [(1, 0.0), (2, 1.0), (4, 0.1), (6, 1.0)])
def test_the_price_is_the_distance_of_what_is_written(group, spread):
    rule = verifier("gsd", {"group": group, "spread": spread})
    written = torch.zeros_like(P)
    for token in range(len(P)):
        verdict = judged(rule, token, 1.0)  # refused unless it is sure to be kept
        accept = verdict.judgements[0].accept
        written[token] += Q[token] * accept
        if accept < 1:
            written += Q[token] * (1 - accept) * verdict.residuals[-1]
    price = 0.5 * float((written - P).abs().sum())
    (later,) = verdict.exhibits
    (row,) = later.to_dict(str)["rows"]
    assert row[4] == pytest.approx(price, abs=1e-6)
    assert (price < 1e-6) == (group == 1), "clusters of one are the exact rule"
    exact = float(torch.minimum(P, Q).sum())
    assert row[2] == pytest.approx(exact, abs=1e-6)
    assert row[3] >= exact - 1e-6


def test_a_judgement_weighs_one_cluster_and_prices_only_what_is_recorded(monkeypatch):
    sizes, at = [], Clusters._at
    monkeypatch.setattr(
        Clusters, "_at", lambda self, ranks: sizes.append(len(ranks)) or at(self, ranks)
    )
    (later,) = judged(verifier("gsd", {"group": 4, "spread": 1.0}), 1, 0.5).exhibits
    assert set(sizes) == {1}
    later.to_dict(str)
    assert len(P) in sizes


def test_clusters_are_near_in_rank_and_in_p():
    clusters = Clusters(P, 4, 1.0)
    assert sorted(clusters.of(2).tolist()) == [1, 2, 3, 4]
    assert sorted(clusters.of(0).tolist()) == [0, 1, 2]
    assert sorted(Clusters(P, 6, 0.07).of(1).tolist()) == [0, 1, 2]


def test_a_one_hot_draft_is_kept_as_often_as_its_cluster_comes():
    rule = verifier("gsd", {"group": 4, "spread": 1.0})
    entry = judged(rule, 2, 0.5, law=None).judgements[0]
    assert (entry.p, entry.q) == (pytest.approx(0.67), 1.0)


def test_through_the_loop_a_cluster_of_one_is_exact_and_larger_ones_are_not():
    models = remembered_models(4)
    error = lambda group: step_error(
        models,
        maker(drafter("chain"), models),
        verifier("gsd", {"group": group, "spread": 1.0}),
        Sampling(1.0),
        (1, 2, 0, 1, 2),
    )
    assert error(1) < 1e-5 and error(3) > 1e-2
