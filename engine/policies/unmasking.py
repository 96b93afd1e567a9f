"""Which open places of a canvas are filled after a pass of the denoiser.

A policy sees the probabilities of the open places and everything filled before, and names the places to
fill now. At least one place is filled in each pass, so that the denoiser comes to an end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Fill:
    """One place of the canvas, its token, the token's probability, and the pass that filled it."""

    place: int
    token: int
    confidence: float
    turn: int


@dataclass
class Canvas:
    """The places 0 .. length - 1 behind the root, and what fills them."""

    length: int
    filled: dict[int, Fill] = field(default_factory=dict)
    turns: int = 0

    @property
    def open(self) -> list[int]:
        return [place for place in range(self.length) if place not in self.filled]

    @property
    def tokens(self) -> Mapping[int, int]:
        return {place: fill.token for place, fill in self.filled.items()}

    def fill(self, probabilities: Tensor, places: Sequence[int]) -> None:
        """Put the likeliest token into each of these places. probabilities: [length, V]."""
        values, tokens = probabilities.max(-1)
        for place in places:
            token, confidence = int(tokens[place]), float(values[place])
            self.filled[place] = Fill(place, token, confidence, self.turns)
        self.turns += 1


class Unmasking(ABC):
    """A policy for one text; it may keep state from pass to pass."""

    @abstractmethod
    def choose(self, probabilities: Tensor, canvas: Canvas) -> list[int]:
        """The open places to fill now, at least one. probabilities: [length, V]."""


class AllAtOnce(Unmasking):
    """One pass fills everything (DFlash)."""

    def choose(self, probabilities: Tensor, canvas: Canvas) -> list[int]:
        return canvas.open


@dataclass
class Confident(Unmasking):
    """Every place whose likeliest token has at least this probability, or else the surest place.

    Confident decoding of Dimple (Yu et al., 2025). last_turn: the pass that fills everything that is left.
    """

    threshold: float
    last_turn: int

    def choose(self, probabilities: Tensor, canvas: Canvas) -> list[int]:
        if canvas.turns >= self.last_turn:
            return canvas.open
        sure = probabilities.max(-1).values.tolist()
        chosen = [place for place in canvas.open if sure[place] >= self.threshold]
        return chosen or [max(canvas.open, key=lambda place: sure[place])]
