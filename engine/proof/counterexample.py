"""A case that refutes a method: where its law, or its text, is not the target's."""

from dataclasses import dataclass

from engine.core.sampling import Sampling
from engine.core.tree import DraftTree
from engine.proof.enumeration import Path
from engine.proof.step_law import StepLaw


@dataclass(frozen=True)
class Counterexample:
    """A case in which the law, or the text, is not the target's.

    context: the text before the step. tokens, parents: of a draft that occurs there. after: what the step has written
    already. expected, got: the probability of each next token; or two texts.
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
    """Tokens and parents of the draft of the step that wrote the token at this place."""
    written = 0
    for step in steps:
        written += len(step.output)
        if written > place:
            return tuple(step.tree.tokens), tuple(step.tree.parents)
    return (), ()


def furthest(rule: str, sampling: Sampling, vocabulary: int, law: StepLaw) -> Counterexample:
    """The place of the step whose next token is furthest from the target's law."""
    paths = sorted(
        {*law.law, *law.truth}, key=lambda path: -abs(law.law.get(path, 0) - law.truth.get(path, 0))
    )
    after = paths[0][:-1]
    expected, got = (_next(each, after, vocabulary) for each in (law.truth, law.law))
    tree = next(
        (tree for _, tree, output in law.trees if len(tree) and output[: len(after)] == after),
        DraftTree(),
    )
    return Counterexample(
        rule, sampling, vocabulary, law.context, tuple(tree.tokens), tuple(tree.parents), after, expected, got
    )  # fmt: skip


def _next(law: dict[Path, float], after: Path, vocabulary: int) -> tuple[float, ...]:
    """The law of the token behind ``after``, given that the step begins so."""
    weights = [
        sum(weight for path, weight in law.items() if path[: len(after) + 1] == (*after, token))
        for token in range(vocabulary)
    ]
    total = sum(weights)
    return tuple(weight / total if total else 0.0 for weight in weights)
