"""Several texts that are written together: in one pass of the target a round, or in turns, a step each."""

import time
from collections.abc import Iterator, Sequence

import torch
from transformers import AutoModelForCausalLM

from engine.batch.together import decode_together
from engine.bench.contestants import Ours
from engine.core.step import Step
from engine.loops import run_loop
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths
from engine.parts.opening import language_model

Steps = Iterator[tuple[int, Step]]
"""(index of the text, its step)."""


def side_by_side(paths: ModelPaths, target: LanguageModel) -> LanguageModel:
    """The same target, able to read several texts in one pass."""
    module = AutoModelForCausalLM.from_pretrained(paths.target, dtype=torch.float32).eval()
    return language_model(module, target.tokenizer, target.name, static=True)


class Texts:
    """Texts under way, until fewer are left than there are places. tokens: as far as they came."""

    def __init__(self, steps: Steps, count: int, places: int = 1) -> None:
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
    places: int | None = None,
) -> Texts:
    """All texts in one pass of ``target`` a round. places: texts at a time, all unless given; when one ends, the next
    begins in its place, and when there is none, the clock stops, so that the load stays what it is."""
    requests = [contestant.request(prompt, count) for prompt in prompts]
    steps = decode_together(target, requests, places=places or len(prompts))
    return Texts(steps, len(prompts), places or 1)


def in_turns(contestant: Ours, prompts: Sequence[Sequence[int]], count: int) -> Texts:
    """One step of each text in turn, as on the page."""
    requests = [contestant.request(prompt, count) for prompt in prompts]

    def steps() -> Steps:
        target = contestant.models.target
        under_way = {index: run_loop(target, one, False) for index, one in enumerate(requests)}
        while under_way:
            for index, written in list(under_way.items()):
                step = next(written, None)
                if step is None:
                    del under_way[index]
                else:
                    yield index, step

    return Texts(steps(), len(prompts))
