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
from engine.rules.transport import bound
from engine.rules.traversal import Traversal
from engine.run.run_plan import rule_for
from engine.trace import read_trace
from presets import trace_text
from tests.engine.family import trace_of
from tests.grids import some
from tests.verifiers import growers
from tests.verifiers.step_errors import step_error
from tests.verifiers.test_constraints import Grammar
from tests.verifiers.test_pairs import PROMPT, maker, memo
from tests.verifiers.worlds import World, accepted, error, path_of, target_rows

V = 3
CLOSE = 1e-12


class Fractions(World):
    """A world whose laws are fractions; the engine is given their float64 values."""

    def exact(self, name, path):
        rng = random.Random(f"{self.seed} {name} {path}")
        weights = [rng.randint(1, 7) for _ in range(self.vocabulary)]
        return [Fraction(weight, sum(weights)) for weight in weights]

    def row(self, name, path):
        key = (name, path)
        if key not in self.rows:
            self.rows[key] = torch.tensor(
                [float(share) for share in self.exact(name, path)], dtype=torch.float64
            )
        return self.rows[key]


# ---- The rules as the papers word them, in exact arithmetic ---------------------------------------


def spread(world, length, outputs):
    """The law of ``length`` tokens; outputs: (kept tokens, law of the next one, weight), after which the target goes on."""
    law = dict.fromkeys(itertools.product(range(V), repeat=length), Fraction(0))
    for path, following, weight in outputs:
        for text in law:
            if text[: len(path)] == path:
                share = weight * (following[text[len(path)]] if len(path) < length else 1)
                for place in range(len(path) + 1, length):
                    share *= world.exact("p", text[:place])[text[place]]
                law[text] += share
    return law


def target(world, length):
    return spread(world, length, [((), world.exact("p", ()), Fraction(1))])


def mean(outputs):
    return sum(weight * len(path) for path, _, weight in outputs)


def excess(weight, p, q):
    left = [max(weight * a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    total = sum(left)
    return total, [share / total for share in left] if total else p


def blocks(world, length, q_of=None):
    """Block verification of every chain: all coins, and the deepest that holds counts. q_of: the law of the chain."""
    q_of = q_of or (lambda path: world.exact("q", path))
    for chain in itertools.product(range(V), repeat=length):
        drawn, weights, chances, residuals = Fraction(1), [Fraction(1)], [Fraction(1)], []
        for place, token in enumerate(chain):
            p, q = world.exact("p", chain[:place]), q_of(chain[:place])
            if not q[token]:
                break
            drawn *= q[token]
            total, left = excess(weights[-1], p, q)
            residuals.append(left)
            if place:
                chances.append(
                    total / (total + 1 - weights[-1]) if weights[-1] < 1 else Fraction(1)
                )
            weights.append(min(Fraction(1), weights[-1] * p[token] / q[token]))
        else:
            chances.append(weights[-1])
            residuals.append(world.exact("p", chain))
            for kept in range(length, -1, -1):
                yield chain[:kept], residuals[kept], drawn * chances[kept]
                drawn *= 1 - chances[kept]


def hierarchical(world, length, capped):
    """Hierarchical speculative decoding of every chain, in one round: joint chances, and steps back from the end."""
    for chain in itertools.product(range(V), repeat=length):
        joint = drawn = cap = Fraction(1)
        places = []
        for place, token in enumerate(chain):
            p, q = world.exact("p", chain[:place]), world.exact("q", chain[:place])
            more = [
                max(joint / cap * a - drawn * b, Fraction(0)) for a, b in zip(p, q, strict=True)
            ]
            less = drawn - joint / cap + sum(more)
            whole = max(sum(more), less)
            left = [share / sum(more) for share in more] if any(more) else p
            places.append((left, sum(more) / whole if whole else Fraction(1)))
            joint, drawn = joint * p[token], drawn * q[token]
            cap = max(cap, joint / drawn) if capped else cap
        chance, weight = min(Fraction(1), joint / cap / drawn), drawn
        yield chain, world.exact("p", chain), weight * chance
        for kept in reversed(range(length)):
            weight *= 1 - chance
            left, chance = places[kept]
            yield chain[:kept], left, weight * chance


def traversals(world):
    """Traversal of a tree of two siblings without replacement and a child under each, leaf by leaf."""
    for first, second, *children in itertools.product(range(V), repeat=4):
        q = world.exact("q", ())
        if first == second:
            continue
        weight = q[first] * q[second] / (1 - q[first])
        for token, child in zip((first, second), children, strict=True):
            weight *= world.exact("q", (token,))[child]
        p, above = world.exact("p", ()), Fraction(1)
        for token, child in zip((first, second), children, strict=True):
            here = min(Fraction(1), above * p[token] / q[token])
            p_below, q_below = world.exact("p", (token,)), world.exact("q", (token,))
            leaf = min(Fraction(1), here * p_below[child] / q_below[child])
            yield (token, child), world.exact("p", (token, child)), weight * leaf
            weight *= 1 - leaf
            total, left = excess(here, p_below, q_below)
            stump = total / (total + 1 - here) if here < 1 else Fraction(1)
            yield (token,), left, weight * stump
            weight *= 1 - stump
            total, p = excess(above, p, q)
            above = total / (total + 1 - above) if above < 1 else Fraction(1)
            q = [Fraction(0) if v == token else share / (1 - q[token]) for v, share in enumerate(q)]
        yield (), p, weight


def best_law(world, chains, length):
    """The law of the best of several chains, by drawing them in every way."""
    law = {}
    singles = list(itertools.product(range(V), repeat=length))

    def q(chain):
        share = Fraction(1)
        for place, token in enumerate(chain):
            share *= world.exact("q", chain[:place])[token]
        return share

    def rank(chain):
        return [
            (world.exact("p", chain[:i])[t] / world.exact("q", chain[:i])[t], t)
            for i, t in enumerate(chain)
        ]

    for drawn in itertools.product(singles, repeat=chains):
        best, weight = max(drawn, key=rank), Fraction(1)
        for chain in drawn:
            weight *= q(chain)
        law[best] = law.get(best, 0) + weight

    def q_of(path):
        mass = [
            sum(w for chain, w in law.items() if chain[: len(path) + 1] == (*path, v))
            for v in range(V)
        ]
        return [share / sum(mass) if sum(mass) else Fraction(0) for share in mass]

    return q_of


def chains_of(count, depth):
    """Independent chains."""

    def grow(oracle, world):
        tree, ends = DraftTree(), [ROOT] * count
        for _ in range(depth):
            for chain, end in enumerate(ends):
                q = world.q(path_of(tree, end))
                ends[chain] = tree.draw(end, oracle.choose(q), "iid", q, "test")
        return tree

    return grow


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
    assert (
        verdict.walk == [ROOT, *path] == [tree.parents[node] for node in path] + path[-1:]
        or not path
    )
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
    """An instance of the rule whose trials have these methods in place of their own."""
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
    """Worlds in which a refusal leaves several tokens."""
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
    """[3]: the expected numbers of ``chain_keeps`` over all chains of two. For one pair."""
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
    laws = [np.array([float(x) for x in world.exact(name, ())]) for name in "pq"]
    laws += [
        np.array([[float(x) for x in world.exact(name, (t,))] for t in range(V)]) for name in "pq"
    ]
    alone, block, _ = on_chains(*laws)
    assert abs(accepted(world, chains_of(1, 2), verifier("rejection")) - alone) < CLOSE
    assert abs(accepted(world, chains_of(1, 2), verifier("block")) - block) < CLOSE


def on_trees(p, q, p_after, q_after):
    """[R] each: tokens accepted on average of two siblings without replacement with a child each, top down and by traversal,
    and the most that a coupling of each depth by itself allows."""
    below = np.minimum(p_after, q_after).sum(-1)
    down, up = (np.minimum(p, q) * (1 + below)).sum(-1), 0.0
    left = (p - q).clip(min=0)
    left /= left.sum(-1, keepdims=True)

    def with_leaf(weight, token):
        return weight + np.minimum(q_after[:, token], weight[:, None] * p_after[:, token]).sum(-1)

    sets = {}
    for one in range(V):
        up = up + q[:, one] * with_leaf(np.minimum(1, p[:, one] / q[:, one]), one)
        refused = (q - p)[:, one].clip(min=0)
        rest = q.copy()
        rest[:, one] = 0
        rest /= rest.sum(-1, keepdims=True)
        for two in {*range(V)} - {one}:
            drawn = np.minimum(left[:, two], rest[:, two])
            down = down + refused * drawn * (1 + below[:, two])
            up = up + refused * rest[:, two] * with_leaf(
                np.minimum(1, left[:, two] / rest[:, two]), two
            )
            for a, b in itertools.product(range(V), repeat=2):
                chance = q[:, one] * rest[:, two] * q_after[:, one, a] * q_after[:, two, b]
                drafted = frozenset({(one, a), (two, b)})
                sets[drafted] = sets.get(drafted, 0.0) + chance
    texts = list(itertools.product(range(V), repeat=2))
    inside = np.array(
        [[i >> n & 1 for n in range(len(texts))] for i in range(2 ** len(texts))], bool
    )
    holds = np.array(
        [inside[:, [texts.index(text) for text in drafted]].all(-1) for drafted in sets]
    )
    law = (p[:, :, None] * p_after).reshape(len(p), -1)
    most = (1 + law @ inside.T - np.stack([*sets.values()], -1) @ holds).min(-1)
    first = bound(torch.from_numpy(p), torch.from_numpy(q), "without_replacement", 2).numpy()
    return down, up, first + most


def test_on_trees_traversal_stands_between_top_down_and_the_bound():
    down, up, most = on_trees(*random_laws(2000))
    assert (down <= up + CLOSE).all() and (up <= most + CLOSE).all()
    assert (up - down).mean() > 0.01
    world = Fractions(2)
    laws = [np.array([[float(x) for x in world.exact(name, ())]]) for name in "pq"]
    laws += [
        np.array([[[float(x) for x in world.exact(name, (t,))] for t in range(V)]]) for name in "pq"
    ]
    down, up, _ = on_trees(*laws)
    _, grow, _, _ = PLAIN["traversal"]
    assert abs(accepted(world, grow, verifier("rejection")) - down[0]) < CLOSE
    assert abs(accepted(world, grow, verifier("traversal")) - up[0]) < CLOSE


# ---- What is told ---------------------------------------------------------------------------------


def drawn_chain(world, seed, depth=4):
    rng, tree, place = random.Random(seed), DraftTree(), ROOT
    for _ in range(depth):
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
        assert [entry.node for entry in block.judgements] == [3, 2, 1, 0], (
            "a coin for every depth, from the end"
        )
        coins = [entry.coin for entry in block.judgements]
        assert [row[4] for row in table.rows] == coins
        for entry, (_, _, weight, chance, coin, words) in zip(
            block.judgements, table.rows, strict=True
        ):
            assert 0 <= chance <= 1 and 0 <= weight <= 1
            if entry.rule == "saved":
                assert (
                    coin >= chance and block.status[entry.node] == "accepted" and "saved" in words
                )
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
    for rule, key in (
        ("block", "rsd_c"),
        ("traversal", "multi_chain"),
        ("greedy_multipath", "dyspec"),
        ("block", "sjd"),
    ):
        with pytest.raises(UserError, match=f"verifier {rule} cannot judge the drafts of {key}"):
            rule_for(rule, drafter(key), warm)
    for rule, key in (
        ("block", "chain"),
        ("traversal", "rsd_c"),
        ("greedy_multipath", "multi_chain"),
        ("traversal", "suffix"),
    ):
        assert rule_for(rule, drafter(key), warm).key == rule
    world, tree = World(0, V), DraftTree()
    for token in (0, 0, 1):
        tree.draw(ROOT, token, "iid", world.q(()))
    lone = DraftTree()
    first = lone.draw(ROOT, 0, "iid", world.q(()))
    lone.draw(lone.draw(ROOT, 0, "iid", world.q(())), 1, "iid", world.q((0,)))
    assert first == 0
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
            sure, coin = entry["accept"] >= 1, entry["coin"]
            kept = sure if coin is None else coin < entry["accept"]
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
