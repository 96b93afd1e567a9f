"""All randomness of one text, in one object that a test can replace.

Drafting and verifying draw from separate seeded streams, so that neither disturbs the other. The
target's noise belongs to a position of the text: under one seed, a position has the same noise whatever
was drafted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.sampling import draw, pick, position_noise, stream, uniforms


class DraftChance:
    """The drafter's random choices."""

    def __init__(self, seed: int) -> None:
        self._generator = stream(seed, "draft")

    def uniforms(self, count: int) -> Tensor:
        """[count] float64 uniforms on [0, 1), one for each draw that will follow."""
        return uniforms(self._generator, count)

    def pick(self, weights: Tensor, drawn: Tensor) -> Tensor:
        """Indices [...] drawn from weights [..., V] with the uniforms [...]."""
        return pick(weights, drawn)

    def draw(self, weights: Tensor) -> int:
        """One index drawn from weights [V]."""
        return int(self.pick(weights, self.uniforms(1)))


class JudgeChance:
    """The verifier's random choices: its coins, and the tokens that it draws from the target's laws."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator = stream(seed, "verify")
        self._noise: tuple[tuple[int, int], Tensor] | None = None  # noise of the last position

    def toss(self) -> float:
        """Uniform on [0, 1), in steps of 2^-53."""
        return float(torch.rand((), generator=self._generator, dtype=torch.float64))

    def draw(self, p: Tensor, position: int) -> int:
        """A token from p [V], with the noise of this position of the text."""
        place = position, p.shape[-1]
        if self._noise is None or self._noise[0] != place:
            self._noise = place, position_noise(self._seed, *place)
        return draw(p, self._noise[1])


@dataclass(frozen=True)
class Chance:
    drafting: DraftChance
    judging: JudgeChance

    @classmethod
    def of(cls, seed: int) -> Chance:
        return cls(DraftChance(seed), JudgeChance(seed))
