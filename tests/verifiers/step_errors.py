"""How far the law of a method's steps, or of a whole run, is from the target's."""

from collections.abc import Callable

from engine.core.chance import Chance
from engine.core.constraint import Constraint
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import Drafter
from engine.parts.loading import Models
from engine.proof.enumeration import Law, Oracle, OracleDraftChance, Path, branches
from engine.proof.listed_texts import EveryDraw, RememberingAll
from engine.proof.step_law import LENGTH, Reader, step_law
from engine.rules import Verifier


def step_error(*given, **named) -> float:
    """Return the distance between the law of the first LENGTH tokens of a step and the target's law; see
    ``step_law``."""
    found = step_law(*given, **named)
    assert abs(sum(found.law.values()) - 1) < 1e-5
    return found.error


def run_error(
    models: Models,
    make: Callable[[], Drafter],
    rule: Verifier,
    sampling: Sampling,
    prompt: Path,
    constraint: Callable[[], Constraint] = lambda: None,
) -> float:
    """How far the law of a run of LENGTH tokens is from the target's, with every step enumerated.

    For loops in which drafted tokens wait for a later step, so that a single step proves nothing.
    """
    law = run_law(models, make, rule, sampling, prompt, constraint)
    truth = Reader(models, sampling, constraint, prompt).law(prompt, ())
    return max(abs(law.get(path, 0.0) - truth.get(path, 0.0)) for path in {*law, *truth})


def run_law(
    models: Models,
    make: Callable[[], Drafter],
    rule: Verifier,
    sampling: Sampling,
    prompt: Path,
    constraint: Callable[[], Constraint] = lambda: None,
) -> Law:
    """Return the law of a run of LENGTH tokens, with every step enumerated."""
    law: Law = {}

    def program(oracle: Oracle) -> Path:
        judge = RememberingAll(rule)
        chance = Chance(OracleDraftChance(oracle), EveryDraw(oracle, rule))
        request = TextRequest(
            make(), judge, sampling, prompt, LENGTH, chance=chance, constraint=constraint()
        )
        output = [token for step in run_loop(models.target, request) for token in step.output]
        oracle.weigh(judge.judgements)
        return tuple(output)

    for output, oracle in branches(program):
        law[output] = law.get(output, 0.0) + oracle.weight
    assert abs(sum(law.values()) - 1) < 1e-5
    return law
