"""Candidates write after the same prompts, in turn, so that a busy moment of the machine slows all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.tune.candidates import Candidate, Key
from engine.tune.opened_tuning import OpenedTuning

WARM_UP = 8  # tokens that a candidate writes before it is timed


class Writers:
    """Writers on this machine. A prompt is read once for all of them."""

    def __init__(self, opened: OpenedTuning, sampling: Sampling, new_tokens: int) -> None:
        self._opened, self._sampling, self._new_tokens = opened, sampling, new_tokens
        self._warm: set[Key] = set()

    def write(self, candidates: Sequence[Candidate], upto: int) -> Iterator[Candidate]:
        """Have each write after those of the first ``upto`` prompts that it lacks. Yields who has just written."""
        models = self._opened.models
        for place, (asked, prompt) in enumerate(self._opened.prompts[:upto]):
            reading = PromptReading(prompt.tokens[:-1])
            turn = place % len(candidates)
            for one in [*candidates[turn:], *candidates[:turn]]:
                if one.prompts > place:
                    continue
                if one.key not in self._warm:
                    self._warm.add(one.key)
                    for _ in one.steps(models, prompt, self._sampling, WARM_UP):
                        pass
                text = models, prompt, self._sampling, self._new_tokens, reading
                one.write(asked.kind, *text)
                yield one
