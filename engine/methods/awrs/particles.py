"""Several texts at once under a constraint, resampled by their weights (sequential Monte Carlo).

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025). Each text is
written by the rule ``awrs``, with a draft if there is one. With more texts, drawing one by its weight comes closer to the target's own
law of texts, given that the text is valid; for every number of texts the mean of their weights is, on average, the probability
that a text of the target is valid.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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
    """A text and its weight. log_weights: of each token; minus infinity where none could be drawn. log_factor: from resampling.
    checks: how many tokens the constraint was asked about. passes: of the target."""

    tokens: list[int]
    log_weights: list[float] = field(default_factory=list)
    log_factor: float = 0.0
    checks: int = 0
    passes: int = 0
    ended: bool = False

    @property
    def log_weight(self) -> float:
        return self.weight_of(len(self.log_weights))

    def weight_of(self, length: int) -> float:
        """The log of the weight of the first tokens; minus infinity for a text that has died behind them."""
        died = self.log_weights[-1:] == [-math.inf]
        return -math.inf if died else self.log_factor + sum(self.log_weights[:length])


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
    """``count`` texts with weights. least: they are resampled when the effective number of texts falls below this share. A draft
    brings one text further than another in a step; what is compared are the weights of as many tokens as all have.

    Raises UserError if all have died.
    """
    chance = np.random.default_rng(writing.sampling.seed)
    alive = [_Alive(writing, Particle([]), _seed(chance)) for _ in range(count)]
    while going := [one for one in alive if not one.particle.ended]:
        for one in going:
            one.step()
        length = min((len(one.particle.tokens) for one in going), default=0)
        logs = np.array([one.particle.weight_of(length) for one in alive])
        if not np.isfinite(logs).any():
            raise UserError(
                f"All {count} texts died: the constraint left none of them a token that the target could draw."
            )
        weights = np.exp(logs - logs.max())
        if weights.sum() ** 2 / (weights**2).sum() < least * count:
            mean = logs.max() + math.log(weights.mean())
            chosen = _systematic(weights / weights.sum(), float(chance.random()))
            alive = [
                _again(writing, alive[place].particle, mean - logs[place], chance)
                for place in chosen
            ]
    return [one.particle for one in alive]


def _seed(chance: np.random.Generator) -> int:
    return int(chance.integers(2**62))


def _again(
    writing: Writing, particle: Particle, change: float, chance: np.random.Generator
) -> "_Alive":
    """The text goes on by itself, with a changed weight."""
    changed = replace(
        particle,
        tokens=list(particle.tokens),
        log_weights=list(particle.log_weights),
        log_factor=particle.log_factor + change,
    )
    return _Alive(writing, changed, _seed(chance))


def _systematic(shares: np.ndarray, start: float) -> list[int]:
    """Indices, each on average as often as its share of all says. start: on [0, 1)."""
    places = (start + np.arange(len(shares))) / len(shares)
    return np.searchsorted(shares.cumsum(), places, side="right").clip(max=len(shares) - 1).tolist()


class _Alive:
    """A text that is being written; its tokens so far are read as part of its prompt."""

    def __init__(self, writing: Writing, particle: Particle, seed: int) -> None:
        self.particle = particle
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
        particle, checks, places = self.particle, self._rule.checks, len(self._rule.log_weights)
        try:
            step = next(self._steps)
        except Died:
            particle.log_weights.append(-math.inf)
            particle.ended = True
            return
        particle.tokens += step.output
        particle.log_weights += self._rule.log_weights[places:][: len(step.output)]
        particle.checks += self._rule.checks - checks
        particle.passes += step.passes.get("target", 0)
        particle.ended = step.stop is not None
