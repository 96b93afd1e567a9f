"""Several texts that are written together, in one pass of the target a round."""

import time
from collections.abc import Iterator, Sequence

from engine.batch.together import decode_together
from engine.bench.contestants import Ours
from engine.core.step import Step
from engine.model.language_model import LanguageModel

Steps = Iterator[tuple[int, Step]]
"""(index of the text, its step)."""


class Texts:
    """Texts under way, until fewer are left than there are places. tokens: as far as they came."""

    def __init__(self, steps: Steps, count: int, places: int) -> None:
        """steps: of ``count`` texts."""
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self._steps, self._left, self._places, self._spent = steps, count, places, 0.0

    @property
    def speed(self) -> float:
        """Tokens per second of all texts together."""
        return sum(map(len, self.tokens)) / self._spent

    def go_on(self, seconds: float = float("inf")) -> bool:
        """Write for this long. Returns whether the texts go on."""
        began, spent = time.perf_counter(), 0.0
        for index, step in self._steps:
            self.tokens[index] += step.output
            self._left -= step.stop is not None
            spent = time.perf_counter() - began
            if self._left < self._places or spent >= seconds:
                break
        self._spent += spent
        if self._left < self._places:
            self._steps.close()
        return self._left >= self._places


def joined(
    contestant: Ours,
    target: LanguageModel,
    prompts: Sequence[Sequence[int]],
    count: int,
    places: int,
) -> Texts:
    """So many texts at a time in one pass of ``target`` a round. When one ends, the next begins in its place, and when
    there is none, the clock stops, so that the load stays what it is."""
    requests = [contestant.request(prompt, count) for prompt in prompts]
    steps = decode_together(target, requests, places=places)
    return Texts(steps, len(prompts), places)
