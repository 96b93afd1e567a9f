"""Several texts at once under a constraint, resampled by their weights (sequential Monte Carlo).

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025). Each text is
written by the rule ``awrs``, with a draft if there is one. With more texts, drawing one by its weight comes closer to the target's own
law of texts, given that the text is valid; for every number of texts the mean of their weights is, on average, the probability
that a text of the target is valid.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.constraint import Constraint
from engine.core.decode import decode
from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.target import Target
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.methods.awrs.rule import Awrs, Died


@dataclass
class Particle:
    """A text and its weight. log_weight: minus infinity for a text that no allowed token could follow. checks: how many tokens
    the constraint was asked about. passes: of the target."""

    tokens: list[int]
    log_weight: float = 0.0
    checks: int = 0
    passes: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Writing:
    """What all texts have in common. make: a drafter for a text. constraint: a fresh constraint. sampling: its seed is the first
    text's."""

    target: Target
    make: Callable[[], Drafter]
    constraint: Callable[[], Constraint]
    sampling: Sampling
    prompt: Sequence[int]
    max_new_tokens: int


def write(writing: Writing, count: int, least: float = 0.5) -> list[Particle]:
    """``count`` texts with weights. least: they are resampled when the effective number of texts falls below this share.

    Raises UserError if all have died.
    """
    chance = np.random.default_rng(writing.sampling.seed)
    alive = [
        _Alive(writing, Particle([]), int(seed)) for seed in chance.integers(2**62, size=count)
    ]
    while not all(one.particle.ended for one in alive):
        for one in alive:
            one.step()
        logs = np.array([one.particle.log_weight for one in alive])
        if not np.isfinite(logs).any():
            raise UserError(
                f"All {count} texts died: the constraint left none of them a token that the target could draw."
            )
        weights = np.exp(logs - logs.max())
        if weights.sum() ** 2 / (weights**2).sum() < least * count:
            mean = logs.max() + math.log(weights.mean())
            chosen = _systematic(weights / weights.sum(), float(chance.random()))
            seeds = chance.integers(2**62, size=count)
            alive = [
                _Alive(writing, replace(alive[place].particle, log_weight=mean), int(seed))
                for place, seed in zip(chosen, seeds, strict=True)
            ]
    return [one.particle for one in alive]


def _systematic(shares: np.ndarray, start: float) -> list[int]:
    """Indices, each on average as often as its share of all says. start: on [0, 1)."""
    places = (start + np.arange(len(shares))) / len(shares)
    return np.searchsorted(shares.cumsum(), places, side="right").clip(max=len(shares) - 1).tolist()


class _Alive:
    """A text that is being written; its tokens so far are read as part of its prompt."""

    def __init__(self, writing: Writing, particle: Particle, seed: int) -> None:
        self.particle = replace(particle, tokens=list(particle.tokens))
        self._rule, self._steps = Awrs(), iter(())
        if not particle.ended:
            self._steps = self._begin(writing, seed)

    def _begin(self, writing: Writing, seed: int) -> Iterator[Step]:
        written, constraint = self.particle.tokens, writing.constraint()
        constraint.commit(written)
        request = TextRequest(
            writing.make(),
            self._rule,
            replace(writing.sampling, seed=seed),
            [*writing.prompt, *written],
            writing.max_new_tokens - len(written),
            constraint=constraint,
        )
        return decode(writing.target, request, recorded=False)

    def step(self) -> None:
        particle, before, checks = self.particle, self._rule.log_weight, self._rule.checks
        if particle.ended:
            return
        try:
            step = next(self._steps)
        except Died:
            particle.log_weight, particle.ended = -math.inf, True
            return
        particle.tokens += step.output
        particle.log_weight += self._rule.log_weight - before
        particle.checks += self._rule.checks - checks
        particle.passes += step.passes.get("target", 0)
        particle.ended = step.stop is not None
