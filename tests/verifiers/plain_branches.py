"""Block, traversal and greedy multi-path verification as the papers word them, in exact arithmetic."""

import itertools
import random
from fractions import Fraction

import torch

from engine.core.tree import ROOT, DraftTree
from tests.verifiers.worlds import World, path_of

V = 3
"""Tokens of the vocabulary."""


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


def spread(world, length, outputs):
    """Return the law of ``length`` tokens. outputs: (accepted tokens, law of the next token, weight); after these
    tokens the target continues."""
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
    """Yield the outputs of block verification for every chain: all coins are tossed, and the deepest accepted place
    counts. q_of: the law of the chain."""
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
    """Yield the outputs of hierarchical speculative decoding for every chain, in one round: joint chances, and steps
    back from the end."""
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
