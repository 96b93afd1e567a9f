"""Every branch of a random program, each with its probability.

The program takes all its random choices from an oracle: the drafter's draws, the verifier's coins and the tokens drawn
at the end. Running the program once for every possible script of answers gives its exact output distribution, computed
by the real verifier code.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from engine.core.chance import DraftChance, JudgeChance
from engine.rules import Judgement, Verifier

KEPT, REFUSED = 0.0, 1 - 2**-53  # coins that keep and that refuse a token, unless accept is 0 or 1

Path = tuple[int, ...]
Law = dict[Path, float]


class Oracle:
    """Answers random choices from a script, and after its end with the first possible answer. Records the scripts of
    all alternative answers."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.answers: list[int] = []
        self.others: list[Path] = []
        self.weight = 1.0
        self.tossed: list[int] = []
        self.final_law: Tensor | None = None

    def choose(self, probabilities: Tensor) -> int:
        """An index of non-zero probability; the weight of this branch is multiplied by its probability."""
        possible = probabilities.nonzero().flatten().tolist()
        answer = self._answer(possible)
        self.weight *= float(probabilities[answer] / probabilities.double().sum())
        return answer

    def toss(self) -> float:
        """Toss a coin. The probability of its result enters the branch's weight later, in ``weigh``."""
        self.tossed.append(len(self.answers))
        return (KEPT, REFUSED)[self._answer([0, 1])]

    def weigh(self, judgements: list[Judgement]) -> None:
        """Multiply the branch's weight by the probabilities of the results of its coins. These probabilities are known
        only now: each judgement that used a coin states the probability with which its token is kept.

        Branches that would follow a coin's result of probability 0 are not explored.
        """
        coins = [judgement for judgement in judgements if judgement.coin is not None]
        for place, judgement in zip(self.tossed, coins, strict=True):
            kept = judgement.coin == KEPT
            self.weight *= judgement.accept if kept else 1 - judgement.accept
            if self.weight == 0:
                self.others = [script for script in self.others if len(script) <= place + 1]
                break

    def final_draw(self, law: Tensor) -> int:
        """The last draw of a step. Its law is recorded, so one branch is enough for all tokens."""
        self.final_law = law
        return int(law.argmax())

    def _answer(self, possible: list[int]) -> int:
        place = len(self.answers)
        if place < len(self.script):
            answer = self.script[place]
        else:
            answer = possible[0]
            self.others += [(*self.answers, alternative) for alternative in possible[1:]]
        self.answers.append(answer)
        return answer


class OracleDraftChance(DraftChance):
    """A drafter's source of randomness that takes its choices from an oracle, or from another object with
    ``choose``."""

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
    """A verifier's source of randomness that takes its choices from an oracle.

    A rule that draws a token at every place of its walk gets one branch for each token of each draw. Other rules draw
    only the final token. Nothing comes after it, so one branch is enough for all final tokens.
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


def as_list(row: Tensor) -> list[float]:
    row = row.double()
    return (row / row.sum()).tolist()
