"""Every branch of a random program, each with its probability.

The program asks an oracle for all its random choices: the drafter's draws, the verifier's coins
and the tokens drawn at the end. Running the program once for every possible script of answers
gives its exact output distribution, computed by the real verifier code.
"""

import itertools
import random
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from engine.core.chance import DraftChance, JudgeChance
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.rules import Case, Judgement, Verdict, Verifier

KEPT, REFUSED = 0.0, 1 - 2**-53  # coins that keep or refuse a token, unless accept is 0 or 1

Path = tuple[int, ...]
Law = dict[Path, float]


class Oracle:
    """Answers from a script, then with the first possible answer; remembers the other ones."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.answers: list[int] = []
        self.others: list[Path] = []
        self.weight = 1.0
        self.tossed: list[int] = []
        self.final_law: Tensor | None = None

    def choose(self, probabilities: Tensor) -> int:
        """An index; the weight of this branch is multiplied by its probability."""
        possible = probabilities.nonzero().flatten().tolist()
        answer = self._answer(possible)
        self.weight *= float(probabilities[answer] / probabilities.double().sum())
        return answer

    def toss(self) -> float:
        """A coin; ``weigh`` multiplies the weight by its probability afterwards."""
        self.tossed.append(len(self.answers))
        return (KEPT, REFUSED)[self._answer([0, 1])]

    def weigh(self, judgements: list[Judgement]) -> None:
        """Take the probability of each coin from the judgement that it decided.

        The branches below a coin that cannot fall this way are not explored further.
        """
        coins = [judgement for judgement in judgements if judgement.coin is not None]
        for place, judgement in zip(self.tossed, coins, strict=True):
            kept = judgement.coin == KEPT
            self.weight *= judgement.accept if kept else 1 - judgement.accept
            if self.weight == 0:
                self.others = [other for other in self.others if len(other) <= place + 1]
                break

    def final_draw(self, law: Tensor) -> int:
        """The last draw of a step; its law is remembered, so one branch is enough for all tokens."""
        self.final_law = law
        return int(law.argmax())

    def _answer(self, possible: list[int]) -> int:
        place = len(self.answers)
        if place < len(self.script):
            answer = self.script[place]
        else:
            answer = possible[0]
            self.others += [(*self.answers, other) for other in possible[1:]]
        self.answers.append(answer)
        return answer


class OracleDraftChance(DraftChance):
    """A drafter's source of chance that asks an oracle (or anything with such a ``choose``)."""

    def __init__(self, oracle) -> None:
        self.oracle = oracle

    def uniforms(self, count: int) -> Tensor:
        return torch.zeros(count, dtype=torch.float64)

    def pick(self, weights: Tensor, drawn: Tensor) -> Tensor:
        rows = weights.reshape(-1, weights.shape[-1])
        assert drawn.numel() == len(rows), "a uniform a draw"
        picks = torch.tensor([self.oracle.choose(row) for row in rows])
        return picks.reshape(drawn.shape)


class OracleJudgeChance(JudgeChance):
    """A verifier's source of chance that asks an oracle.

    A rule that draws at every place of the walk needs every draw; for other rules one branch is
    enough for all final tokens, because nothing comes after them.
    """

    def __init__(self, oracle, rule: Verifier) -> None:
        self.oracle = oracle
        self._every_draw = rule.same_text

    def toss(self) -> float:
        return self.oracle.toss()

    def draw(self, p: Tensor, position: int) -> int:
        return self.oracle.choose(p) if self._every_draw else self.oracle.final_draw(p)


def branches(program: Callable[[Oracle], object]) -> Iterator[tuple[object, Oracle]]:
    scripts: list[Path] = [()]
    while scripts:
        oracle = Oracle(scripts.pop())
        result = program(oracle)
        scripts += oracle.others
        yield result, oracle


class World:
    """A target and a draft on a tiny vocabulary: a random p and q after every path.

    Weights are small whole numbers, so zeros and ties are frequent.
    """

    def __init__(self, seed: int, vocabulary: int = 3, zeros: bool = True) -> None:
        self.seed, self.vocabulary, self.low = seed, vocabulary, 0 if zeros else 1
        self.rows: dict[tuple[str, Path], Tensor] = {}

    def row(self, name: str, path: Path) -> Tensor:
        """[V] float32, as in the engine."""
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
    """Exact law of the first ``length`` tokens that one step writes.

    Where the step writes fewer, the target itself continues. each: is called for every branch.
    """

    def step(oracle: Oracle) -> list[tuple[Path, float]]:
        tree, chance = grow(oracle, world), OracleJudgeChance(oracle, rule)
        p = target_rows(world, tree)
        verdict = rule.judge(Case(tree, p, p.log(), Sampling(temperature=1.0), 0, chance))
        oracle.weigh(verdict.judgements)
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


def distance(one: Law, other: Law) -> float:
    """The largest difference in the probability of any text."""
    assert one.keys() == other.keys()
    return max(abs(one[path] - other[path]) for path in one)


def error(
    world: World,
    grow: Callable[[Oracle, World], DraftTree],
    rule: Verifier,
    length: int,
    each: Callable[[DraftTree, Verdict], None] = lambda tree, verdict: None,
) -> float:
    """How far the output law of this drafter under this rule is from the target's."""
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


def as_list(row: Tensor) -> list[float]:
    row = row.double()
    return (row / row.sum()).tolist()
