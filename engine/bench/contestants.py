"""The contestants of benchmarks. A contestant continues a prompt and reports the tokens that it wrote, the time that it
took, and the values of counters."""

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
"""From the name of a counter to the function that returns what a step adds to it."""

USUAL: Counters = {
    "steps": lambda step: 1,
    "accepted": lambda step: len(step.verdict.accepted),
    "own passes": lambda step: sum(step.passes.values()) - step.passes.get("target", 0),
}
"""The counters of every suite. accepted: drafted tokens that were accepted. own passes: passes of the drafter's own
models."""


@dataclass(frozen=True)
class Writing:
    """The result of one continuation.

    tokens: the tokens written. seconds: wall time, prefill included. calls: passes of the target over drafts or single
    tokens. A first pass that reads the prompt and a draft together is also a call, but its time counts as ``prefill``.
    stages: total milliseconds of ``prefill`` and of each stage in ``engine.core.step.STAGES``; empty if the contestant
    does not show them. counts: the sum over the steps of each counter.
    """

    tokens: list[int]
    seconds: float
    calls: int
    stages: dict[str, float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)


class Contestant(ABC):
    """A way to continue prompts that takes part in a suite. name: as shown in tables. group: ``ours``, ``plain``,
    ``assisted`` or ``lookup``, or another group that a suite defines."""

    name: str
    group: str

    @abstractmethod
    def write(self, prompt: Sequence[int], count: int, counters: Counters) -> Writing:
        """Continue the prompt by up to ``count`` tokens. counters: ignored by contestants that do not show their
        steps."""


class Ours(Contestant):
    """One drafter of this engine as a contestant. Its steps are neither written to a trace nor shown.

    Every text begins with an empty memory, because a drafter that remembers texts would meet each prompt again in the
    next round. Drafters that remember only settings are an exception: they search for these settings once and keep them
    from text to text, as they do for a visitor, so their later rounds do not pay for the search again.
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
        """cls: the drafter's class. name: the name shown in tables; by default the drafter's key. options: None means
        the default options with the draft size that pays on this machine. sampling: None means greedy. rule: None means
        the greedy rule, or the drafter's default rule for sampled texts. memory: a function that returns the memory for
        the next text. constraint: a function that returns a new constraint for each text. recorded: whether to decode
        as if a trace were recorded."""
        self.name = name or cls.key
        self.models, self._class = models, cls
        self._sampling = sampling or Sampling()
        self.options = resolve(cls.key, cls.options, options or {})
        if options is None:
            self.options = settle_size(cls, self.options, models, Sampling())
            self.models = with_step_costs(cls, self.options, models)
        self.models = with_costs(cls, self.options, self.models)
        self._rule = rule or verifier("greedy" if self._sampling.greedy else cls.default_verifier)
        lasting_memory = Memory()
        self.memory = memory or (lambda: lasting_memory if cls.keeps_settings_only else Memory())
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
        """A request to write this text, which a decoding loop can run. It holds a new instance of the drafter."""
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
    """Wait until a CUDA device has finished its work; on other devices, return at once."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def plain() -> type[Drafter]:
    """The drafter class of plain decoding, with which all drafters are compared."""
    return next(cls for cls in drafters().values() if cls.family == "none")


def chain() -> type[Drafter]:
    """The class of the drafter ``chain``, which drafts a chain with a draft model. Other drafters are compared with
    this one."""
    return drafters().get(DraftChain.key, DraftChain)


def our_contestants(models: Models) -> list[Ours]:
    """A contestant for every drafter whose models are present and whose greedy text is the target's own."""
    return [
        Ours(cls, models)
        for cls in drafters().values()
        if cls.needs.keys() <= models.parts.keys() and Greedy.lossless_with(cls.kinds(Sampling()))
    ]


def able(
    classes: Iterable[type[Drafter]], paths: ModelPaths
) -> tuple[list[type[Drafter]], dict[str, str]]:
    """The drafters whose parts (the trained modules that they need beside the target) exist, and the kind of each of
    these parts, by role. The names of the other drafters are printed to standard error."""
    usable = []
    for cls in classes:
        missing = ", ".join(sorted(cls.needs.keys() - paths.parts.keys()))
        if missing:
            print(f"{cls.key} is left out: there is no part {missing}", file=sys.stderr)
        else:
            usable.append(cls)
    return usable, {role: kind for cls in usable for role, kind in cls.needs.items()}


def own_options(cls: type[Drafter], options: Mapping[str, Value]) -> dict[str, Value]:
    """Those of ``options`` that the drafter declares."""
    names = {option.name for option in cls.options}
    return {name: value for name, value in options.items() if name in names}
