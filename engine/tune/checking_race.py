"""The predicted best, checked by running: candidates and plain decoding write the same prompts and take turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from statistics import median
from time import perf_counter

from engine.batch.together import decode_together
from engine.chat.turns import ChatPrompt
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.tune.candidates import Candidate

TURN = 0.25
"""Seconds of a turn: short, so that a busy moment of the machine slows all."""
SECONDS = 4.0
"""For which each of them writes, at most."""
FEWEST = 3
"""Turns that are counted, however long they take. The first, in which passes are prepared, is not."""
QUEUE = 6


class Runner:
    """Texts under way, so many at a time, as long as there are enough of them. speeds: tokens a second of each turn."""

    def __init__(self, steps: Iterator[Step | None]) -> None:
        self._steps = steps
        self.speeds: list[float] = []

    def turn(self) -> bool:
        """Write for a turn. Returns whether there is more to write."""
        began, tokens, spent = perf_counter(), 0, 0.0
        more = True
        while perf_counter() - began < TURN or not tokens:
            step = next(self._steps, None)
            if step is None:
                more = False
                break
            tokens += len(step.output)
            spent += sum(step.milliseconds.values())
        if spent:
            self.speeds.append(1000 * tokens / spent)
        return more

    @property
    def usual(self) -> float | None:
        """The median of the turns; None where it wrote nothing."""
        counted = self.speeds[1:] or self.speeds
        return median(counted) if counted else None


def race(
    candidates: Sequence[Candidate],
    models: Models,
    beside: LanguageModel,
    prompts: Sequence[ChatPrompt],
    sampling: Sampling,
    new_tokens: int,
    texts: int,
) -> Iterator[list[float | None]]:
    """After each turn of all: the tokens a second of each candidate so far. The reading of prompts does not count.

    beside: the target as it reads several texts. The clock stops where fewer texts are left than are to be written at a time.
    """
    runners = [
        Runner(_steps(one, models, beside, prompts, sampling, new_tokens, texts))
        for one in candidates
    ]
    began = perf_counter()
    while True:
        more = [runner.turn() for runner in runners]
        yield [runner.usual for runner in runners]
        late = perf_counter() - began > SECONDS * len(runners)
        if not all(more) or (late and len(runners[0].speeds) > FEWEST):
            return


def _steps(candidate, models, beside, prompts, sampling, new_tokens, texts) -> Iterator[Step]:
    if texts == 1:
        for prompt in cycle(prompts):
            yield from candidate.steps(models, prompt, sampling, new_tokens)
    together = replace(models, target=beside)
    some = [*islice(cycle(prompts), texts + max(2 * texts, QUEUE))]
    requests = [candidate.request(together, prompt, sampling, new_tokens) for prompt in some]
    steps, left = decode_together(beside, requests, recorded=False, places=texts), len(requests)
    try:
        while left >= texts:
            with ENGINE_LOCK, torch_threads(beside.torch_threads):
                _, step = next(steps)
            left -= step.stop is not None
            yield step
    finally:
        steps.close()
