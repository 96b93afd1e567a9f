"""Worlds: a random law of a target and of a draft after every path of a few tokens, and the exact law of a step in them."""

import itertools
import random
from collections.abc import Callable

import torch
from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.proof.enumeration import Law, Oracle, OracleJudgeChance, Path, as_list, branches
from engine.rules import Case, Verdict, Verifier


class World:
    """A target and a draft on a tiny vocabulary: a random p and q after every path.

    Weights are small whole numbers, so zeros and ties are frequent.
    """

    def __init__(self, seed: int, vocabulary: int = 3, zeros: bool = True) -> None:
        self.seed, self.vocabulary, self.low = seed, vocabulary, 0 if zeros else 1
        self.rows: dict[tuple[str, Path], Tensor] = {}

    def row(self, name: str, path: Path) -> Tensor:
        """Return the law as [V] float32, as in the engine."""
        key = (name, path)
        if key not in self.rows:
            rng = random.Random(f"{self.seed} {name} {path}")
            weights = [rng.randint(self.low, 7) for _ in range(self.vocabulary)]
            weights[rng.randrange(self.vocabulary)] += 1
            row = torch.tensor(weights, dtype=torch.float32)
            self.rows[key] = row / row.sum()
        return self.rows[key]

    def p(self, path: Path) -> Tensor:
        return self.row("p", path)

    def q(self, path: Path) -> Tensor:
        return self.row("q", path)

    def target_law(self, length: int) -> Law:
        law: Law = {(): 1.0}
        for _ in range(length):
            law = {
                (*path, token): weight * prob
                for path, weight in law.items()
                for token, prob in enumerate(as_list(self.p(path)))
            }
        return law


def path_of(tree: DraftTree, node: int) -> Path:
    path: list[int] = []
    while node != ROOT:
        path.append(tree.tokens[node])
        node = tree.parents[node]
    return tuple(reversed(path))


def target_rows(world: World, tree: DraftTree) -> Tensor:
    return torch.stack([world.p(path_of(tree, node)) for node in range(-1, len(tree))])


def output_law(
    world: World,
    grow: Callable[[Oracle, World], DraftTree],
    rule: Verifier,
    length: int,
    each: Callable[[DraftTree, Verdict], None] = lambda tree, verdict: None,
) -> Law:
    """Return the exact law of the first ``length`` tokens that one step writes.

    If the step writes fewer tokens, the target itself continues. each: is called for every branch.
    """

    def step(oracle: Oracle) -> list[tuple[Path, float]]:
        tree, verdict = _judged(oracle, world, grow, rule)
        if oracle.weight > 0:
            each(tree, verdict)
        path = tuple(tree.tokens[node] for node in verdict.accepted)
        if oracle.final_law is None:
            return [((*path, verdict.final_token), 1.0)]
        return [((*path, token), prob) for token, prob in enumerate(as_list(oracle.final_law))]

    law = dict.fromkeys(itertools.product(range(world.vocabulary), repeat=length), 0.0)
    for outputs, oracle in branches(step):
        for tokens, share in outputs:
            _spread(world, tokens[:length], oracle.weight * share, length, law)
    return law


def accepted(world: World, grow: Callable[[Oracle, World], DraftTree], rule: Verifier) -> float:
    """Return the mean number of accepted tokens, over every branch of draws and coins."""
    kept = branches(lambda oracle: len(_judged(oracle, world, grow, rule)[1].accepted))
    return sum(oracle.weight * count for count, oracle in kept)


def _judged(oracle: Oracle, world: World, grow, rule: Verifier) -> tuple[DraftTree, Verdict]:
    tree, chance = grow(oracle, world), OracleJudgeChance(oracle, rule)
    p = target_rows(world, tree)
    verdict = rule.judge(Case(tree, p, p.log(), Sampling(temperature=1.0), 0, chance))
    oracle.weigh(verdict.judgements)
    return tree, verdict


def distance(one: Law, other: Law) -> float:
    """Return the largest difference in the probability of any text."""
    assert one.keys() == other.keys()
    return max(abs(one[path] - other[path]) for path in one)


def error(
    world: World,
    grow: Callable[[Oracle, World], DraftTree],
    rule: Verifier,
    length: int,
    each: Callable[[DraftTree, Verdict], None] = lambda tree, verdict: None,
) -> float:
    """Return the distance between the output law of this drafter under this rule and the target's law."""
    law = output_law(world, grow, rule, length, each)
    assert abs(sum(law.values()) - 1) < 1e-6
    return distance(law, world.target_law(length))


def _spread(world: World, tokens: Path, weight: float, length: int, law: Law) -> None:
    if len(tokens) == length:
        law[tokens] += weight
        return
    for token, prob in enumerate(as_list(world.p(tokens))):
        if prob > 0:
            _spread(world, (*tokens, token), weight * prob, length, law)
