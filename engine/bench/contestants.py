"""The contestants: each continues a prompt and reports its tokens and the time they took."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.core.memory import Memory
from engine.core.options import Value, resolve
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafters
from engine.parts.loading import Models
from engine.rules import verifier
from engine.rules.greedy import Greedy
from engine.sizes.draft_size import settle_size


@dataclass(frozen=True)
class Writing:
    """One continuation. seconds: wall time, prefill included. calls: passes of the target over drafts, or over single
    tokens; the first one may read the prompt as well, and then counts as ``prefill``. stages: total milliseconds of ``prefill``
    and of each of ``engine.core.decode.STAGES``; {} where they cannot be seen."""

    tokens: list[int]
    seconds: float
    calls: int
    stages: dict[str, float] = field(default_factory=dict)


class Contestant(ABC):
    """name: as the tables show it. group: ``ours``, ``plain``, ``assisted`` or ``lookup``."""

    name: str
    group: str

    @abstractmethod
    def write(self, prompt: Sequence[int], count: int) -> Writing:
        """Continue the prompt greedily by up to ``count`` tokens."""


class Ours(Contestant):
    """One drafter of this engine with its default options. Its steps are neither written to a trace nor shown.

    Every text begins without memories of the others, because a drafter that remembers texts would meet each prompt
    again in the next round. Only what keeps nothing but settings that it searched for goes on with its search from
    text to text, as it does for a visitor; its later rounds do not pay for the search again.
    """

    group = "ours"

    def __init__(
        self, cls, models: Models, name: str = "", options: dict[str, Value] | None = None
    ) -> None:
        """name: for tables; the drafter's key unless the drafter takes part with several parts. options: settled
        options; None: the default options, with the draft size that pays on this machine."""
        self.name = name or cls.key
        self._class, self._models = cls, models
        if options is None:
            options = resolve(cls.key, cls.options, {})
            options = settle_size(cls, options, models, Sampling())
        self.options = options
        self._memory = Memory() if cls.keeps_settings_only else None

    def write(self, prompt, count):
        tokens, passes, stages = [], Counter(), Counter()
        began = time.perf_counter()
        for step in self._steps(prompt, count):
            tokens += step.output
            passes.update(step.passes)
            stages.update(step.milliseconds, prefill=step.prefill_milliseconds)
        return Writing(tokens, time.perf_counter() - began, passes["target"], dict(stages))

    def step_milliseconds(self, prompt: Sequence[int], count: int) -> list[float]:
        """Milliseconds of each step of a continuation, from drafting to commit."""
        return [sum(step.milliseconds.values()) for step in self._steps(prompt, count)]

    def _steps(self, prompt: Sequence[int], count: int) -> Iterator[Step]:
        drafter = self._class.build(self.options, self._models)
        rule = verifier("greedy")
        request = TextRequest(drafter, rule, Sampling(), prompt, count, memory=self._memory)
        with torch_threads(self._models.target.torch_threads):
            yield from run_loop(self._models.target, request, recorded=False)


def our_contestants(models: Models) -> list[Ours]:
    """Every drafter whose models are at hand and that writes the target's own text."""
    return [
        Ours(cls, models)
        for cls in drafters().values()
        if cls.needs.keys() <= models.parts.keys() and Greedy.lossless_with(cls.kinds(Sampling()))
    ]
