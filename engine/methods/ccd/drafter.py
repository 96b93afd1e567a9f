"""Coherent Contextual Decoding: a place is filled once several passes, each with different words around it, gave the
same word.

CCD (Chen et al., "Beyond Confidence: Adaptive and Coherent Decoding for Diffusion Language Models", 2025) serves as the
unmasking policy of a block-diffusion drafter. A place is a position of the block. Its distribution is averaged over the
last passes; between them, words around the place were filled in, so a guess that only one context supports loses
weight. Of each pass, only the distributions at the surest places (those of least entropy) are remembered. In the
adaptive form, used here, a pass fills every place that was among the surest in all remembered passes and had the same
likeliest token each time. If no place meets this condition, the pass fills the place of least entropy.
"""

from collections import deque
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.core.options import whole
from engine.methods.shared.unmasking import LENGTH, Canvas, Unmasking, UnmaskingDrafter


@dataclass(frozen=True)
class Seen:
    """What is remembered of one pass: for each of its surest places, the distribution there."""

    laws: dict[int, Tensor]

    def token(self, place: int) -> int | None:
        law = self.laws.get(place)
        return None if law is None else int(law.argmax())


@dataclass
class Coherent(Unmasking):
    """The policy of CCD. depth: the number of passes that must agree, the present one included; at least 2. candidates:
    how many of a pass's surest places are remembered."""

    depth: int
    candidates: int
    _history: deque[Seen] = field(default_factory=deque)

    def weigh(self, probabilities: Tensor, canvas: Canvas) -> Tensor:
        """Average the distribution at each place that is still masked, over the present pass and those remembered
        passes in which this place was among the surest."""
        self._now = Seen(
            {place: probabilities[place] for place in self._surest(probabilities, canvas)}
        )
        averaged = probabilities.clone()
        for place in canvas.open:
            laws = [seen.laws[place] for seen in self._history if place in seen.laws]
            averaged[place] = torch.stack([probabilities[place], *laws]).mean(0)
        return averaged

    def choose(self, probabilities: Tensor, canvas: Canvas) -> dict[int, str]:
        passes = [*self._history, self._now]
        chosen = {}
        if len(passes) >= self.depth:
            for place in self._now.laws:
                tokens = {seen.token(place) for seen in passes}
                if tokens == {int(probabilities[place].argmax())}:
                    chosen[place] = f"the same in {self.depth} passes"
        if not chosen:
            chosen = {self._surest(probabilities, canvas)[0]: "least entropy"}
        self._history.append(self._now)
        while len(self._history) >= self.depth:
            self._history.popleft()
        return chosen

    def _surest(self, probabilities: Tensor, canvas: Canvas) -> list[int]:
        """Return the ``candidates`` masked places of least entropy, the surest first."""
        spread = torch.special.entr(probabilities).sum(-1).tolist()
        return sorted(canvas.open, key=lambda place: spread[place])[: self.candidates]


class CoherentDrafter(UnmaskingDrafter):
    key = "ccd"
    title = "Block diffusion by coherence, CCD"
    summary = "A diffusion drafter fills the words on which several of its passes agree."
    options = (
        LENGTH,
        whole("depth", 2, 2, 8, "Passes that agree").meaning("Passes that must agree."),
        whole("candidates", 4, 1, 31, "Remembered places").meaning(
            "Surest places of a pass that are remembered."
        ),
        whole("passes", 4, 1, 16, "Passes").meaning("Most denoising passes in a step."),
    )
    trial = {"length": 2, "passes": 3}

    def policy(self):
        return Coherent(self.settings["depth"], self.settings["candidates"])
