"""The exact law of the tokens that one step of the real decode loop writes, computed by enumerating every branch.

Drafter, loop and verifier run unchanged; their source of randomness (``engine.core.chance``) asks an oracle. Steps
before the step under test use dice instead, so that the step starts from a state that occurs in real runs. If every
step has the target's law, whatever came before it, then so has the run.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from engine.core.chance import Chance
from engine.core.constraint import Constraint, masked
from engine.core.sampling import Sampling, distribution
from engine.core.text import TextRequest
from engine.core.tree import DraftTree
from engine.loops import run_loop
from engine.methods import Drafter
from engine.parts.loading import Models
from engine.proof.enumeration import (
    Law,
    Oracle,
    OracleDraftChance,
    OracleJudgeChance,
    Path,
    as_list,
    branches,
)
from engine.rules import Case, Verdict, Verifier

LENGTH = 3  # tokens of the law; tokens that a step writes beyond these are not compared
ROOM = 30


class TextEnded(Exception):
    """The text has ended before the step under test; with another seed of the dice it may be longer."""


class CoinsDiffer(Exception):
    """The rule did not toss exactly one coin per judgement with a coin, so the weights of its branches are unknown."""


class Dice:
    """Makes the choices of an oracle at random."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, probabilities: Tensor) -> int:
        weights = probabilities.tolist()
        return self._random.choices(range(len(weights)), weights)[0]

    def toss(self) -> float:
        return self._random.random()


class Watch:
    """The source of all randomness in a run: dice for the steps before the step under test, an oracle for that step."""

    def __init__(self, dice: Dice) -> None:
        self.source: Oracle | Dice = dice
        self.final_law: Tensor | None = None
        """The law from which rejection drew its final token in the step under test."""

    def choose(self, probabilities: Tensor) -> int:
        return self.source.choose(probabilities)

    def toss(self) -> float:
        return self.source.toss()

    def final_draw(self, law: Tensor) -> int:
        """Draw the final token. In the step under test, record its law instead and return its likeliest token:
        ``step_law`` weights every possible final token by this law, so these tokens need no branches of their own."""
        if isinstance(self.source, Dice):
            return self.source.choose(law)
        self.final_law = law
        return int(law.argmax())


@dataclass(frozen=True)
class StepLaw:
    """The law of the first tokens of a step (``law``), and the target's (``truth``). context: the text before the step.
    branches: the number of branches of the step. trees: (weight, tree, output) of its heaviest branches, heaviest
    first."""

    law: Law
    truth: Law
    context: Path
    branches: int
    trees: list[tuple[float, DraftTree, Path]]

    @property
    def error(self) -> float:
        """The largest difference between a probability in ``law`` and in ``truth``."""
        paths = {*self.law, *self.truth}
        return max(abs(self.law.get(path, 0.0) - self.truth.get(path, 0.0)) for path in paths)

    def shortened(self, length: int) -> "StepLaw":
        """The law and the truth of the first ``length`` tokens."""
        law, truth = _shortened(self.law, length), _shortened(self.truth, length)
        return replace(self, law=law, truth=truth)


def _shortened(law: Law, length: int) -> Law:
    short: Law = {}
    for path, weight in law.items():
        short[path[:length]] = short.get(path[:length], 0.0) + weight
    return short


def step_law(
    models: Models,
    make: Callable[[], Drafter],
    rule: Verifier,
    sampling: Sampling,
    prompt: Path,
    steps_before: int = 0,
    dice: int = 0,
    constraint: Callable[[], Constraint] = lambda: None,
    length: int = LENGTH,
    check: Callable[[], None] = lambda: None,
    truth: Models | None = None,
) -> StepLaw:
    """The law of the first ``length`` tokens of the step after ``steps_before`` steps. check: called before every
    branch, and may raise to stop the computation. truth: the models from which the target's own law is computed, for
    instance ``models`` with a target that remembers its results; None means ``models``. Raises TextEnded and
    CoinsDiffer."""
    reader = Reader(truth or models, sampling, constraint, prompt, length)
    contexts, trees = set(), []

    def program(oracle: Oracle) -> list[tuple[Path, float]]:
        check()
        watch, judge = Watch(Dice(dice)), Remembering(rule)
        chance = Chance(OracleDraftChance(watch), OracleJudgeChance(watch, rule))
        request = TextRequest(
            make(), judge, sampling, prompt, ROOM, chance=chance, constraint=constraint()
        )
        steps = run_loop(models.target, request)
        context = prompt
        for step in itertools.islice(steps, steps_before):
            if step.stop is not None:
                raise TextEnded
            context = (*context, *step.output)
        contexts.add(context)
        watch.source = oracle
        step = next(steps)
        coins = [judgement for judgement in judge.verdict.judgements if judgement.coin is not None]
        if len(coins) != len(oracle.tossed):
            raise CoinsDiffer
        oracle.weigh(judge.verdict.judgements)
        trees.append((oracle.weight, step.tree, tuple(step.output)))
        if watch.final_law is None or step.final is None:
            return [(tuple(step.output), 1.0)]
        final_law = as_list(watch.final_law)
        return [((*step.output[:-1], token), prob) for token, prob in enumerate(final_law)]

    law: Law = {}
    for outputs, oracle in branches(program):
        (context,) = contexts
        for output, share in outputs:
            if oracle.weight * share > 0:
                for path, weight in reader.law(context, output[:length]).items():
                    law[path] = law.get(path, 0.0) + oracle.weight * share * weight
    count = len(trees)
    trees = sorted(trees, key=lambda entry: -entry[0])[:200]
    return StepLaw(law, reader.law(context, ()), context, count, trees)


class Remembering:
    """A rule that remembers its last verdict, including coins tossed beyond an end of text."""

    def __init__(self, rule: Verifier) -> None:
        self._rule = rule

    def __getattr__(self, name: str):
        return getattr(self._rule, name)

    def judge(self, case: Case) -> Verdict:
        self.verdict = self._rule.judge(case)
        return self.verdict


class Reader:
    """The target's own law of the text after a context, read directly from the target.

    constraint: returns the constraint on the text after the prompt, or None.
    """

    def __init__(
        self,
        models: Models,
        sampling: Sampling,
        constraint: Callable[[], Constraint] = lambda: None,
        prompt: Path = (),
        length: int = LENGTH,
    ) -> None:
        self._target, self._sampling, self._length = models.target, sampling, length
        self._constraint, self._begin = constraint(), len(prompt)
        self._known: dict[Path, list[float]] = {}

    def law(self, context: Path, start: Path) -> Law:
        """The law of continuations of ``context`` that begin with ``start`` and have ``length`` tokens or end
        earlier."""
        if len(start) == self._length or (start and start[-1] in self._target.end_tokens):
            return {start: 1.0}
        law: Law = {}
        for token, prob in enumerate(self._next((*context, *start))):
            if prob > 0:
                for path, weight in self.law(context, (*start, token)).items():
                    law[path] = law.get(path, 0.0) + prob * weight
        return law

    def _next(self, text: Path) -> list[float]:
        if text not in self._known:
            logits = self._target.session(len(text)).extend(text)
            if self._constraint is not None:
                logits = masked(logits, self._constraint.allowed(text[self._begin :]))
            self._known[text] = as_list(distribution(logits, self._sampling))
        return self._known[text]


@dataclass(frozen=True)
class Counterexample:
    """A case in which the law, or the text, is not the target's.

    context: the text before the step. tokens, parents: a draft that the drafter can propose after this text. after:
    tokens that the step writes before the compared token. expected, got: the probability of each next token or, if
    texts were compared, the two texts.
    """

    rule: str
    sampling: Sampling
    vocabulary: int
    context: Path
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    after: Path
    expected: tuple[float, ...]
    got: tuple[float, ...]
    texts: bool = False


def draft_at(steps: list, place: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens and parents of the draft in the step that wrote token number ``place`` of the output."""
    written = 0
    for step in steps:
        written += len(step.output)
        if written > place:
            return tuple(step.tree.tokens), tuple(step.tree.parents)
    return (), ()


def furthest(rule: str, sampling: Sampling, vocabulary: int, law: StepLaw) -> Counterexample:
    """A counterexample at the position in the step where the law of the next token is furthest from the target's."""
    paths = sorted(
        {*law.law, *law.truth}, key=lambda path: -abs(law.law.get(path, 0) - law.truth.get(path, 0))
    )
    after = paths[0][:-1]
    expected, got = (_next(whole, after, vocabulary) for whole in (law.truth, law.law))
    tree = next(
        (tree for _, tree, output in law.trees if len(tree) and output[: len(after)] == after),
        DraftTree(),
    )
    return Counterexample(
        rule, sampling, vocabulary, law.context, tuple(tree.tokens), tuple(tree.parents), after, expected, got
    )  # fmt: skip


def _next(law: dict[Path, float], after: Path, vocabulary: int) -> tuple[float, ...]:
    """The law of the token after ``after``, given that the step begins with ``after``."""
    weights = [
        sum(weight for path, weight in law.items() if path[: len(after) + 1] == (*after, token))
        for token in range(vocabulary)
    ]
    total = sum(weights)
    return tuple(weight / total if total else 0.0 for weight in weights)
