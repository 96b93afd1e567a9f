"""The predicted best, checked by running: candidates and plain decoding write after the same prompts, in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, cycle, islice
from math import ceil
from time import perf_counter

from engine.batch.together import decode_together
from engine.chat.turns import ChatPrompt
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.tune.candidates import Candidate
from engine.tune.kept_counts import steady_sum

GROUP = 6
"""Prompts of a turn of one text at a time. Neighbours are of different kinds, so turns are alike."""
FEWEST, SECONDS = 3, 2.0
"""Such turns of each candidate, at least, and the time after which no other begins."""
TURN = 0.25
"""Seconds of a turn of several texts at a time."""

Speeds = list[float | None]
"""Tokens a second of each candidate, of all texts together while they are written; None where nothing was written yet."""


def sampled(texts: int) -> int:
    """After how many prompts, from the first, so many texts at a time are written; one at a time also after more, if time is left."""
    return GROUP * (FEWEST if texts == 1 else max(2, 1 + ceil(texts / GROUP)))


class Stretch:
    """Steps of one candidate; others may come when they are over. speed: of all steps so far."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self.steps = steps
        self._tokens, self._times = 0, []

    def go_on(self, seconds: float = float("inf")) -> bool:
        """Take steps for so long. Returns whether there are more."""
        began = perf_counter()
        for step in self.steps:
            self._tokens += len(step.output)
            self._times.append(sum(step.milliseconds.values()))
            if perf_counter() - began > seconds:
                return True
        return False

    @property
    def speed(self) -> float | None:
        spent = steady_sum(self._times)
        return 1000 * self._tokens / spent if spent else None


class Race:
    """candidates: plain decoding among them. beside: the target as it reads several texts."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        models: Models,
        beside: LanguageModel | None,
        sampling: Sampling,
        new_tokens: int,
    ) -> None:
        self._candidates, self._models, self._beside = candidates, models, beside
        self._text = sampling, new_tokens

    def run(self, prompts: Sequence[ChatPrompt], texts: int) -> Iterator[Speeds]:
        """The speeds so far, after each turn of all."""
        return self._alone(prompts) if texts == 1 else self._together(prompts, texts)

    def _alone(self, prompts: Sequence[ChatPrompt]) -> Iterator[Speeds]:
        """All steps of all turns, so that a prompt counts as it does in a prediction. Before, each writes one text that does not
        count, so that no pass waits while its graph is made."""
        for candidate in self._candidates:
            candidate.write(self._models, prompts[0], *self._text)
        stretches = [Stretch(iter(())) for _ in self._candidates]
        coming, began = cycle(prompts), perf_counter()
        for turn in count(1):
            group = [*islice(coming, GROUP)]
            for candidate, stretch in zip(self._candidates, stretches, strict=True):
                stretch.steps = (
                    step
                    for each in group
                    for step in candidate.steps(self._models, each, *self._text)
                )
                stretch.go_on()
                yield [each.speed for each in stretches]
            if turn >= FEWEST and perf_counter() - began > SECONDS * len(stretches):
                return

    def _together(self, prompts: Sequence[ChatPrompt], texts: int) -> Iterator[Speeds]:
        """All steps until fewer texts are left than are to be written at a time: all write the same texts."""
        some = [*islice(cycle(prompts), sampled(texts))]
        for candidate in self._candidates:  # as above
            Stretch(self._steps(candidate, some[:texts], texts)).go_on()
        stretches = [Stretch(self._steps(candidate, some, texts)) for candidate in self._candidates]
        going = stretches
        while going:
            going = [stretch for stretch in going if stretch.go_on(TURN)]
            yield [stretch.speed for stretch in stretches]

    def _steps(self, candidate: Candidate, prompts, texts: int) -> Iterator[Step]:
        beside = self._beside or self._models.target
        models = replace(self._models, target=beside)
        requests = [candidate.request(models, prompt, *self._text) for prompt in prompts]
        steps = decode_together(beside, requests, recorded=False, places=texts)
        left = len(requests)
        try:
            while left >= texts:
                with ENGINE_LOCK, torch_threads(beside.torch_threads):
                    _, step = next(steps)
                left -= step.stop is not None
                yield step
        finally:
            steps.close()
