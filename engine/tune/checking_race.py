"""Checks the predicted best candidates by running them: they and plain decoding take turns at continuing the same
prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice
from math import ceil
from time import perf_counter

from engine.batch.together import decode_together
from engine.chat.turns import ChatPrompt
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.parts.loading import Models
from engine.tune.candidates import Candidate
from engine.tune.kept_counts import steady_sum

GROUP = 6
"""How many prompts a turn has when one text is written at a time. Neighbouring prompts are of different kinds, so all
turns are alike."""
FEWEST, SECONDS = 2, 2.0
"""When one text is written at a time: each candidate has at least FEWEST turns, and no new round of turns begins after
SECONDS seconds per candidate."""
TOGETHER = 10.0
"""Seconds of each candidate after which a race of several texts at a time ends."""
TURN = 0.25
"""The length of a turn, in seconds, when several texts are written at a time."""

Speeds = list[float | None]
"""For each candidate, its tokens per second over all texts that it writes at a time; None if it has not written any
token yet."""


def sampled(texts: int) -> int:
    """The number of prompts, from the first, after which each candidate writes if ``texts`` texts are written at a
    time. With one text at a time, more prompts follow while there is time left."""
    return GROUP * (FEWEST if texts == 1 else max(2, 1 + ceil(2 * texts / GROUP)))


class Stretch:
    """The steps of one candidate, which can be taken in several turns. speed: tokens per second over all steps so
    far."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self.steps = steps
        self._tokens, self._times = 0, []

    def go_on(self, seconds: float = float("inf")) -> bool:
        """Take steps for this many seconds. Returns whether steps are left."""
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
    """Measures the speeds of several candidates by letting them write in turn. candidates: include plain decoding."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        models: Models,
        sampling: Sampling,
        new_tokens: int,
    ) -> None:
        self._candidates, self._models = candidates, models
        self._text = sampling, new_tokens

    def run(self, prompts: Sequence[ChatPrompt], texts: int) -> Iterator[Speeds]:
        """Yields, after each turn, the speeds of all candidates so far. texts: how many texts are written at a
        time."""
        return self._alone(prompts) if texts == 1 else self._together(prompts, texts)

    def _alone(self, prompts: Sequence[ChatPrompt]) -> Iterator[Speeds]:
        """Yields the speeds after each turn when one text is written at a time. A turn has all steps of its texts, so
        every prompt has the same weight as in the prediction.

        First each candidate writes one text that is not timed, so that no timed pass has to wait for the compilation
        of its graph.
        """
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
        """Yields the speeds after each turn when ``texts`` texts are written at a time. A candidate's steps end when
        fewer than ``texts`` texts are unfinished. All candidates write the same texts, as far as TOGETHER allows."""
        some = [*islice(cycle(prompts), sampled(texts))]
        for candidate in self._candidates:  # as above
            Stretch(self._steps(candidate, some[:texts], texts)).go_on(TURN)
        stretches = [Stretch(self._steps(candidate, some, texts)) for candidate in self._candidates]
        going, began = stretches, perf_counter()
        while going and perf_counter() - began < TOGETHER * len(stretches):
            going = [stretch for stretch in going if stretch.go_on(TURN)]
            yield [stretch.speed for stretch in stretches]

    def _steps(self, candidate: Candidate, prompts, texts: int) -> Iterator[Step]:
        target = self._models.target
        requests = [candidate.request(self._models, prompt, *self._text) for prompt in prompts]
        steps = decode_together(target, requests, recorded=False, places=texts)
        left = len(requests)
        try:
            while left >= texts:
                with ENGINE_LOCK, torch_threads(target.torch_threads):
                    _, step = next(steps)
                left -= step.stop is not None
                yield step
        finally:
            steps.close()
