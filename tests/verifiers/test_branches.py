"""Rules that judge whole branches: block, traversal and greedy multi-path verification, beside plain versions in fractions."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
import torch

from engine.core.chance import JudgeChance
from engine.core.rule import statuses
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.methods import drafter
from engine.rules import Case, verifier
from engine.rules.block import Block
from engine.rules.expected_acceptance import chain_keeps
from engine.rules.greedy_multipath import GreedyMultipath, best_of, ranked
from engine.rules.leaf_to_root import BranchTrial
from engine.rules.traversal import Traversal
from engine.run.run_plan import rule_for
from engine.trace import read_trace
from presets import trace_text
from tests.engine.family import trace_of
from tests.grids import some
from tests.verifiers import growers
from tests.verifiers.plain_branches import (
    Fractions,
    V,
    best_law,
    blocks,
    chains_of,
    hierarchical,
    mean,
    spread,
    target,
    traversals,
)
from tests.verifiers.step_errors import step_error
from tests.verifiers.test_constraints import Grammar
from tests.verifiers.test_pairs import PROMPT, maker, memo
from tests.verifiers.worlds import World, accepted, error, path_of, target_rows

CLOSE = 1e-12


PLAIN = {
    "block of two": ("block", chains_of(1, 2), 2, lambda world: blocks(world, 2)),
    "block of three": ("block", chains_of(1, 3), 3, lambda world: blocks(world, 3)),
    "traversal": (
        "traversal",
        growers.planned(lambda path: ("without_replacement", 1 if path else 2), 2),
        2,
        traversals,
    ),
    **{
        f"{count} chains": (
            "greedy_multipath",
            chains_of(count, 2),
            2,
            lambda world, count=count: blocks(world, 2, best_law(world, count, 2)),
        )
        for count in (2, 3)
    },
}


def consistent(tree, verdict):
    path, judged = verdict.accepted, {entry.node for entry in verdict.judgements}
    assert verdict.walk == [ROOT, *path]
    assert [tree.parents[node] for node in path] == verdict.walk[:-1]
    assert set(path) <= judged, "every accepted token says why"
    assert verdict.status == statuses(len(tree), path, verdict.judgements)
    for entry in verdict.judgements:
        assert 0 <= entry.accept <= 1
        kept = entry.accept >= 1 if entry.coin is None else entry.coin < entry.accept
        assert kept == (entry.node in path)
    last = verdict.walk[-1]
    assert (verdict.final == "recovered") == (last in verdict.residuals)
    refused = any(verdict.status[child] == "rejected" for child in tree.children(last))
    assert (verdict.final == "recovered") == refused


@pytest.mark.parametrize("name", some(PLAIN, lambda name: name != "3 chains"))
def test_the_law_is_the_target_s_and_the_engine_s_rule_is_the_paper_s(name):
    key, grow, depth, plain = PLAIN[name]
    for seed in range(2):
        world = Fractions(seed)
        outputs = list(plain(world))
        assert spread(world, depth + 1, outputs) == target(world, depth + 1)
        assert error(world, grow, verifier(key), depth + 1, consistent) < CLOSE
        assert abs(accepted(world, grow, verifier(key)) - float(mean(outputs))) < CLOSE


@pytest.mark.parametrize("length", [2, 3])
def test_hsd_is_block_verification_with_its_cap_and_another_law_without(length):
    """What its card says: the same chance of every outcome, to the last fraction; without the cap one round is not exact."""
    outside = 0
    for seed in range(4):
        world = Fractions(seed)
        capped, block = list(hierarchical(world, length, True)), list(blocks(world, length))
        assert [(path, weight) for path, _, weight in capped] == [
            (path, weight) for path, _, weight in block
        ]
        assert all(one[1] == other[1] for one, other in zip(capped, block, strict=True) if one[2])
        uncapped = list(hierarchical(world, length, False))
        outside += spread(world, length + 1, uncapped) != target(world, length + 1)
        assert sum(weight for *_, weight in uncapped) == 1
    assert outside


def test_a_block_keeps_more_than_rejection_and_more_chains_may_keep_less():
    kept = [
        accepted(Fractions(1), chains_of(1, 2), verifier(key))
        for key in ("rejection", "block", "greedy_multipath")
    ]
    assert kept[0] + 0.01 < kept[1] and abs(kept[1] - kept[2]) < CLOSE
    one, two, three = (
        accepted(Fractions(2), chains_of(n, 1), verifier("greedy_multipath")) for n in (1, 2, 3)
    )
    assert three + 0.05 < one < two


def test_the_law_of_the_best_of_the_most_chains_is_that_of_exact_fractions():
    """A difference of powers, where the bases are near each other or near nothing."""
    (most,) = (int(one.maximum) for one in drafter("multi_chain").options if one.name == "chains")
    share = [Fraction(1, 10**9), Fraction(1, 3), Fraction(1, 10**12)]
    share.append(1 - sum(share))
    start, up_to = Fraction(1, 7), Fraction(0)
    exact = []
    for q in share:
        below, up_to = start + (1 - start) * up_to, up_to + q
        exact.append((start + (1 - start) * up_to) ** most - below**most)
    q = torch.tensor([*map(float, share)], dtype=torch.float64)
    law = best_of(most, q, *ranked(q, float(start)))
    for got, wanted in zip(law.tolist(), exact, strict=True):
        assert got == pytest.approx(float(wanted / sum(exact)), rel=1e-9)


@pytest.mark.parametrize("key", ["block", "greedy_multipath", "traversal"])
def test_fixed_drafts_are_kept_as_by_rejection(key):
    grow = growers.planned(lambda path: ("one_hot", 1), 3)
    for seed in range(3):
        world = World(seed, V)
        assert error(world, grow, verifier(key), 4, consistent) < 1e-6
        alone = accepted(world, grow, verifier("rejection"))
        assert abs(accepted(world, grow, verifier(key)) - alone) < CLOSE


def test_trees_of_other_kinds():
    """Three levels of siblings; fixed siblings and a draw; zeros in p and q."""
    mixed = {0: ("one_hot", 1), 1: ("iid", 1), 2: ("without_replacement", 2)}
    for plan in (
        lambda path: ("one_hot", 2),
        lambda path: ("without_replacement", 2 if len(path) < 2 else 1),
        lambda path: mixed[len(path)],
    ):
        for seed in range(2):
            grow = growers.planned(plan, 2)
            assert error(World(seed, V), grow, verifier("traversal"), 3, consistent) < 1e-6


# ---- Planted biases ------------------------------------------------------------------------------


def planted(cls, **changes):
    """Return an instance of the rule whose trials have these methods in place of their own."""
    trial = type("Planted", (BranchTrial,), changes)
    rule = cls()
    rule._trial = lambda place, weight: trial(rule._case.p[place + 1], rule._case.tree, weight)
    return rule


def without_weight(self, token, rule, drawn):
    """The residual of rejection sampling: p - q, whatever the weight."""
    weight, self.weight = self.weight, 1.0
    p = self.p
    BranchTrial.refuse(self, token, rule, drawn)
    left = (weight * p - self.q(drawn.law)).clamp(min=0).sum().item()
    self.weight = left / (left + 1 - weight) if weight < 1 else 1.0


def coin_of_the_leaf(self, token, rule, drawn):
    """A shortened branch is tested with its weight, as if nothing had been drafted behind it."""
    weight = self.weight
    BranchTrial.refuse(self, token, rule, drawn)
    self.weight = weight


WRONG = {
    "residual": (planted(Block, refuse=without_weight), chains_of(1, 2), 3),
    "depth": (planted(Block, refuse=coin_of_the_leaf), chains_of(1, 2), 3),
    "independent siblings": (
        planted(Traversal, leave_out=lambda self, *drawn: None),
        growers.planned(lambda path: ("without_replacement", 1 if path else 2), 2),
        3,
    ),
    "q of one chain": (
        planted(GreedyMultipath, replace_law=lambda self, law, q: None),
        chains_of(2, 2),
        3,
    ),
    "best first": (verifier("traversal"), growers.best_first, 2),
    "sharpened": (verifier("block"), growers.sharpened, 2),
}


def telling():
    """Return worlds in which a rejection leaves several tokens."""
    world = World(0, V)
    laws = {(): ([3, 3, 4], [6, 2, 2]), (0,): ([5, 3, 2], [1, 1, 8])}
    for path, pair in laws.items():
        for name, row in zip("pq", pair, strict=True):
            world.rows[name, path] = torch.tensor(row) / 10
    return [world, World(4, V, zeros=False)]


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_bias_is_caught(name):
    rule, grow, length = WRONG[name]
    assert max(error(world, grow, rule, length) for world in telling()) > 0.003


# ---- 2,000 random pairs ---------------------------------------------------------------------------


def random_laws(count):
    """p and q after nothing [R, V], and after each token [R, V, V]."""
    rng = np.random.default_rng(5)
    sharp = rng.uniform(0, 4, (count, 1))
    laws = []
    for shape in ((count, V), (count, V), (count, V, V), (count, V, V)):
        rows = np.exp(sharp.reshape(-1, *[1] * (len(shape) - 1)) * rng.standard_normal(shape))
        laws.append(rows / rows.sum(-1, keepdims=True))
    return laws


def on_chains(p, q, p_after, q_after):
    """Return [3]: the expected numbers of ``chain_keeps`` over all chains of two tokens, for one pair of laws."""
    kept = np.zeros(3)
    for one, two in itertools.product(range(V), repeat=2):
        ratios = (p[one] / q[one], p_after[one, two] / q_after[one, two])
        kept += q[one] * q_after[one, two] * np.array(chain_keeps(ratios))
    return kept


def test_on_chains_a_block_stands_between_rejection_and_the_bound():
    kept = np.array([on_chains(*pair) for pair in zip(*random_laws(2000), strict=True)])
    assert (kept[:, 0] <= kept[:, 1] + CLOSE).all() and (kept[:, 1] <= kept[:, 2] + CLOSE).all()
    assert (kept[:, 1] - kept[:, 0]).mean() > 0.01


def test_the_meter_s_numbers_are_those_of_the_rules():
    world = Fractions(3)
    rows = lambda name, paths: np.array([[float(x) for x in world.exact(name, a)] for a in paths])
    after = [(token,) for token in range(V)]
    alone, block, _ = on_chains(
        *(rows(name, [()])[0] for name in "pq"), *(rows(name, after) for name in "pq")
    )
    assert abs(accepted(world, chains_of(1, 2), verifier("rejection")) - alone) < CLOSE
    assert abs(accepted(world, chains_of(1, 2), verifier("block")) - block) < CLOSE


# ---- What is told ---------------------------------------------------------------------------------


def drawn_chain(world, seed):
    rng, tree, place = random.Random(seed), DraftTree(), ROOT
    for _ in range(4):
        q = world.q(path_of(tree, place))
        token = rng.choices(range(V), q.tolist())[0]
        place = tree.draw(place, token, "iid", q, "test")
    return tree


def judged(key, tree, p, seed):
    return verifier(key).judge(Case(tree, p, p.log(), Sampling(1.0), 0, JudgeChance(seed)))


def test_with_the_same_coins_all_three_keep_the_same_of_a_chain():
    saved = 0
    for seed in range(60):
        world = World(seed % 5, V, zeros=False)
        tree = drawn_chain(world, seed)
        verdicts = [
            judged(key, tree, target_rows(world, tree), seed)
            for key in ("block", "traversal", "greedy_multipath")
        ]
        assert len({(*v.accepted, ROOT, v.final_token) for v in verdicts}) == 1
        for verdict in verdicts:
            consistent(tree, verdict)
        block, (table,) = verdicts[0], verdicts[0].exhibits
        nodes = [entry.node for entry in block.judgements]
        assert nodes == [3, 2, 1, 0], "a coin for every depth, from the end"
        coins = [entry.coin for entry in block.judgements]
        assert [row[4] for row in table.rows] == coins
        for entry, row in zip(block.judgements, table.rows, strict=True):
            _, _, weight, chance, coin, words = row
            assert 0 <= chance <= 1 and 0 <= weight <= 1
            if entry.rule == "saved":
                assert coin >= chance and "saved" in words
                assert block.status[entry.node] == "accepted"
                saved += 1
    assert saved > 5


def test_nothing_is_read_behind_a_token_that_cannot_be_kept():
    """The rows behind a token that the target or a constraint excludes may hold anything."""
    world = World(1, V, zeros=False)
    tree = drawn_chain(world, 3)
    p = target_rows(world, tree)
    p[1, tree.tokens[1]] = 0
    p[2:] = torch.nan
    for key in ("block", "traversal", "greedy_multipath"):
        verdict = judged(key, tree, p, 1)
        assert verdict.status[1:] == ["rejected", "ignored", "ignored"]
        consistent(tree, verdict)


def test_what_a_rule_cannot_judge_is_one_sentence():
    warm = Sampling(1.0)
    no = [
        ("block", "rsd_c"),
        ("traversal", "multi_chain"),
        ("greedy_multipath", "dyspec"),
        ("block", "sjd"),
    ]
    for rule, key in no:
        with pytest.raises(UserError, match=f"verifier {rule} cannot judge the drafts of {key}"):
            rule_for(rule, drafter(key), warm)
    yes = [
        ("block", "chain"),
        ("traversal", "rsd_c"),
        ("greedy_multipath", "multi_chain"),
        ("traversal", "suffix"),
    ]
    for rule, key in yes:
        assert rule_for(rule, drafter(key), warm).key == rule
    world, tree = World(0, V), DraftTree()
    for token in (0, 0, 1):
        tree.draw(ROOT, token, "iid", world.q(()))
    lone = DraftTree()
    lone.draw(ROOT, 0, "iid", world.q(()))
    lone.draw(lone.draw(ROOT, 0, "iid", world.q(())), 1, "iid", world.q((0,)))
    for key, wrong in (("block", tree), ("traversal", tree), ("greedy_multipath", lone)):
        with pytest.raises(UserError, match=f"^The verifier {key}"):
            judged(key, wrong, target_rows(world, wrong), 0)


@pytest.mark.parametrize("key", ["block", "traversal", "greedy_multipath"])
def test_the_example_of_a_rule_says_why(key):
    """Every judgement has a sentence, every draft the table, and a chain the meter."""
    trace = read_trace(trace_text(key))
    verdicts, rules = trace.run["verifier"], set()
    assert verdicts["lossless"] and verdicts["key"] == key
    for step in trace.steps:
        titles = {exhibit["title"] for exhibit in step["drafter"].get("exhibits", ())}
        assert not step["judgements"] or "From the leaves to the root" in titles
        chain = key == "block" and step["judgements"]
        assert ("Expected accepted tokens of this chain" in titles) == bool(chain)
        for entry in step["judgements"]:
            sure, kept = entry["accept"] >= 1, step["nodes"]["status"][entry["node"]] == "accepted"
            names = [*(["sure"] if kept and sure else []), "kept" if kept else "refused"]
            assert any(f"{entry['rule']}.{name}" in verdicts["sentences"] for name in names)
            rules.add(entry["rule"])
    assert rules >= {"branch", "shortened"}


@pytest.mark.parametrize("rule", ["rejection", "sampler_match", "block", "typical"])
def test_the_meter_stands_beside_every_rule_on_a_chain(rule):
    options = {"length": 3}
    trace = trace_of(
        "Once upon a time",
        drafter="chain",
        options=options,
        verifier=rule,
        temperature=1.0,
        max_new_tokens=8,
    )
    for step in filter(lambda step: step["nodes"]["token"], trace.steps):
        exhibits = step["drafter"]["exhibits"]
        (meter,) = (one for one in exhibits if one["title"].startswith("Expected accepted tokens"))
        (_, alone), (_, block), (_, bound) = meter["rows"]
        assert 0 <= alone <= block <= bound <= len(step["nodes"]["token"])


@pytest.mark.parametrize("key, rule", [("chain", "block"), ("multi_chain", "greedy_multipath")])
def test_a_constrained_text_keeps_its_law(key, rule):
    """Behind forced tokens, with p and q masked alike."""
    models = memo(4)
    given = (models, maker(drafter(key), models), verifier(rule), Sampling(1.0), PROMPT)
    assert step_error(*given, steps_before=1, constraint=Grammar) < 1e-5
