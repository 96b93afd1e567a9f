"""The contestants: each continues a prompt and reports its tokens, their time and the counters."""

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from engine.core.constraint import Constraint
from engine.core.drafter import Drafter
from engine.core.load import Expected
from engine.core.memory import Memory
from engine.core.options import Value, resolve
from engine.core.rule import Verifier
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.shared.draft_chain import DraftChain
from engine.parts.loading import ModelPaths, Models
from engine.rules import verifier
from engine.rules.greedy import Greedy
from engine.sizes.draft_size import settle_size, with_costs, with_step_costs
from engine.sizes.preparing import prepare

Counters = Mapping[str, Callable[[Step], float]]
"""Name -> what a step adds to the count."""

USUAL: Counters = {
    "steps": lambda step: 1,
    "accepted": lambda step: len(step.verdict.accepted),
    "own passes": lambda step: sum(step.passes.values()) - step.passes.get("target", 0),
}
"""accepted: drafted tokens that were kept. own passes: of the drafter's own models."""


@dataclass(frozen=True)
class Writing:
    """The result of one continuation. seconds: wall time, prefill included. calls: passes of the target over drafts,
    or over single tokens; the first one may read the prompt as well, and then counts as ``prefill``. stages: total
    milliseconds of ``prefill`` and of each of ``engine.core.step.STAGES``; {} where they cannot be seen. counts: sums
    over the steps, by counter."""

    tokens: list[int]
    seconds: float
    calls: int
    stages: dict[str, float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)


class Contestant(ABC):
    """name: as the tables show it. group: ``ours``, ``plain``, ``assisted`` or ``lookup``."""

    name: str
    group: str

    @abstractmethod
    def write(self, prompt: Sequence[int], count: int, counters: Counters) -> Writing:
        """Continue the prompt by up to ``count`` tokens. Only contestants that show their steps are counted."""


class Ours(Contestant):
    """One drafter of this engine. Its steps are neither written to a trace nor shown.

    Every text begins without memories of the others, because a drafter that remembers texts would meet each prompt
    again in the next round. Only what keeps nothing but settings that it searched for goes on with its search from
    text to text, as it does for a visitor; its later rounds do not pay for the search again.
    """

    group = "ours"

    def __init__(
        self,
        cls: type[Drafter],
        models: Models,
        name: str = "",
        options: Mapping[str, Value] | None = None,
        sampling: Sampling | None = None,
        rule: Verifier | None = None,
        memory: Callable[[], Memory] | None = None,
        constraint: Callable[[], Constraint] | None = None,
        recorded: bool = False,
    ) -> None:
        """name: for tables; the drafter's key unless it takes part several times. options: None is the default options,
        with the draft size that pays on this machine. sampling: greedy unless given. rule: the greedy one, or
        the drafter's default for sampled texts. memory: gives that of the next text. constraint: makes one for each text."""
        self.name = name or cls.key
        self.models, self._class = models, cls
        self._sampling = sampling or Sampling()
        self.options = resolve(cls.key, cls.options, options or {})
        if options is None:
            self.options = settle_size(cls, self.options, models, Sampling())
            self.models = with_step_costs(cls, self.options, models)
        self.models = with_costs(cls, self.options, self.models)
        self._rule = rule or verifier("greedy" if self._sampling.greedy else cls.default_verifier)
        kept = Memory()
        self.memory = memory or (lambda: kept if cls.keeps_settings_only else Memory())
        self._constraint, self._recorded = constraint, recorded

    def write(self, prompt, count, counters=None):
        tokens: list[int] = []
        passes, stages, counts = Counter(), Counter(), Counter()
        counted = [*USUAL.items(), *(counters or {}).items()]
        target, request = self.models.target, self.request(prompt, count)
        coming = Expected(len(prompt), len(prompt) + count)
        nodes = request.drafter.most_nodes
        prepare(self.models, request.drafter, nodes, coming, self._sampling.greedy)
        wait(target.device)
        began = time.perf_counter()
        with torch_threads(target.torch_threads):
            for step in run_loop(target, request, self._recorded):
                tokens += step.output
                passes.update(step.passes)
                stages.update(step.milliseconds, prefill=step.prefill_milliseconds)
                for name, of in counted:
                    counts[name] += of(step)
        wait(target.device)
        seconds = time.perf_counter() - began
        return Writing(tokens, seconds, passes["target"], dict(stages), counts)

    def steps(
        self, prompt: Sequence[int], count: int, memory: Memory | None = None
    ) -> Iterator[Step]:
        return run_loop(self.models.target, self.request(prompt, count, memory), self._recorded)

    def request(
        self, prompt: Sequence[int], count: int, memory: Memory | None = None
    ) -> TextRequest:
        """The text as the loops are asked for it, by a drafter of its own."""
        return TextRequest(
            self._class.build(self.options, self.models),
            self._rule,
            self._sampling,
            prompt,
            count,
            memory=self.memory() if memory is None else memory,
            constraint=None if self._constraint is None else self._constraint(),
        )


def wait(device: torch.device) -> None:
    """Wait until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def plain() -> type[Drafter]:
    """Plain decoding, with which all others are compared."""
    return next(cls for cls in drafters().values() if cls.family == "none")


def chain() -> type[Drafter]:
    """The chain of a draft model, beside which other ways of drafting are set."""
    return drafters().get(DraftChain.key, DraftChain)


def our_contestants(models: Models) -> list[Ours]:
    """Every drafter whose models are at hand and that writes the target's own text."""
    return [
        Ours(cls, models)
        for cls in drafters().values()
        if cls.needs.keys() <= models.parts.keys() and Greedy.lossless_with(cls.kinds(Sampling()))
    ]


def able(
    classes: Iterable[type[Drafter]], paths: ModelPaths
) -> tuple[list[type[Drafter]], dict[str, str]]:
    """The drafters whose parts exist, and role -> kind of all the parts that these drafters need. The other drafters are
    named on standard error."""
    usable = []
    for cls in classes:
        missing = ", ".join(sorted(cls.needs.keys() - paths.parts.keys()))
        if missing:
            print(f"{cls.key} is left out: there is no part {missing}", file=sys.stderr)
        else:
            usable.append(cls)
    return usable, {role: kind for cls in usable for role, kind in cls.needs.items()}


def own_options(cls: type[Drafter], options: Mapping[str, Value]) -> dict[str, Value]:
    """The options that the drafter declares, with their values."""
    names = {option.name for option in cls.options}
    return {name: value for name, value in options.items() if name in names}
