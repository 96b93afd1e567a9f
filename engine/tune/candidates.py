"""The candidates of a tuning: drafters in several sizes, each with a rule that keeps the target's own text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from engine.chat.turns import ChatPrompt
from engine.core.drafter import Drafter
from engine.core.load import Expected
from engine.core.memory import Memory
from engine.core.options import Option, Value, resolve
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.text import TextRequest
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter, drafters
from engine.parts.loading import ModelPaths, Models, check_parts
from engine.rules import verifier, verifiers
from engine.run import rule_for
from engine.sizes.draft_size import SIZES
from engine.sizes.preparing import prepare
from engine.tune.kept_counts import Counts, counted

ALL = "all"
"""The kind under which the counts of all prompts stand."""

Key = tuple[str, int, str]
"""Drafter, size and rule."""


@dataclass
class Candidate:
    """A drafter, a size and a rule, with their counts.

    size: the value of the option ``sized``, or for a drafter without one the most nodes of its steps. prompts: how many, from the
    first, have been written. counts: by kind of prompt, and under ALL. beside: tokens and milliseconds of plain decoding, which
    wrote after the same prompts at about the same time: a machine may be busier at another. earlier: counts of all kinds and
    ``beside``, by the number of prompts after which they stood so.
    """

    cls: type[Drafter]
    size: int
    rule: str
    prompts: int = 0
    counts: dict[str, Counts] = field(default_factory=dict)
    beside: tuple[int, float] = (0, 0.0)
    earlier: dict[int, tuple[Counts, tuple[int, float]]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.cls.key, self.size, self.rule

    @property
    def all(self) -> Counts:
        return self.counts[ALL]

    @property
    def plain(self) -> bool:
        return self.cls.family == "none"

    @property
    def options(self) -> dict[str, Value]:
        """The value of the drafter's size option by name; empty if the drafter has no such option. All other options
        have their defaults."""
        option = sized(self.cls)
        return {} if option is None else {option.name: self.size}

    @property
    def named(self) -> dict:
        """The fields by which the lines of a record name it."""
        return {
            "drafter": self.cls.key,
            "options": self.options,
            "size": self.size,
            "verifier": self.rule,
        }

    def request(
        self, models: Models, prompt: ChatPrompt, sampling: Sampling, count: int
    ) -> TextRequest:
        """A text by a drafter and a rule of its own. It remembers nothing of other texts."""
        made = self.cls.build(resolve(self.cls.key, self.cls.options, self.options), models)
        rule, tokens = verifier(self.rule), prompt.tokens
        return TextRequest(made, rule, sampling, tokens, count, Memory(), ends=prompt.ends)

    def steps(
        self,
        models: Models,
        prompt: ChatPrompt,
        sampling: Sampling,
        count: int,
        reading: PromptReading | None = None,
        recorded: bool = False,
    ) -> Iterator[Step]:
        """Write a text. Each step holds the engine's lock by itself, so that other runs can go on between two of them."""
        target, length = models.target, len(prompt.tokens)
        with ENGINE_LOCK:
            request = self.request(models, prompt, sampling, count)
            most, coming = request.drafter.most_nodes, Expected(length, length + count)
            prepare(models, request.drafter, most, coming, sampling.greedy)
        reading = reading or PromptReading(prompt.tokens[:-1])
        written = run_loop(target, request, recorded, reading)
        try:
            while True:
                with ENGINE_LOCK, torch_threads(target.torch_threads):
                    step = next(written, None)
                if step is None:
                    return
                yield step
        finally:
            written.close()

    def write(self, models: Models, *text) -> Counts:
        """Write a text and count it. text: as for ``steps``."""
        # on a GPU only recorded steps say what was judged
        return counted(self.steps(models, *text, recorded=models.target.asynchronous))

    def add(self, kind: str, counts: Counts, plainly: Counts) -> None:
        """Take the counts of the next prompt's text, and of plain decoding's."""
        for name in (kind, ALL):
            self.counts.setdefault(name, Counts()).add(counts)
        tokens, spent = self.beside
        self.beside = tokens + plainly.new_tokens, spent + sum(plainly.milliseconds.values())
        self.wrote(self.prompts + 1)

    def wrote(self, prompts: int) -> None:
        """Remember the present counts as those after ``prompts`` prompts."""
        self.prompts = prompts
        self.earlier[prompts] = deepcopy(self.all), self.beside

    def after(self, prompts: int) -> Candidate:
        """The candidate as it stood after ``prompts`` prompts, all kinds together; as it stands now if that state was not kept."""
        counts, beside = self.earlier.get(prompts, (self.all, self.beside))
        return replace(self, prompts=prompts, counts={ALL: counts}, beside=beside)


def plain(sampling: Sampling) -> Candidate:
    """Plain decoding, with which all others are compared."""
    cls = next(cls for cls in drafters().values() if cls.family == "none")
    return Candidate(cls, 0, cls.own_rule(sampling))


def sized(cls: type[Drafter]) -> Option | None:
    """The option that says how much is drafted."""
    name = cls.size_option or "length"
    return next((o for o in cls.options if o.name == name and o.type == "int"), None)


def usual(cls: type[Drafter], sampling: Sampling, models: Models | None = None) -> Candidate:
    """A drafter in its usual size, with its own rule. models: used to build a drafter without a size option, which then says how
    many nodes it drafts."""
    option = sized(cls)
    if option is None:
        size = (
            0 if models is None else cls.build(resolve(cls.key, cls.options, {}), models).most_nodes
        )
    else:
        size = int(option.default) or cls.usual_size
    return Candidate(cls, size, cls.own_rule(sampling))


def at_first(cls: type[Drafter], sampling: Sampling, models: Models) -> list[Candidate]:
    """A drafter in its usual size and in the largest worth trying: one may be good only when it drafts far."""
    candidate = usual(cls, sampling, models)
    return list({each.size: each for each in (candidate, in_sizes(candidate)[-1])}.values())


def in_sizes(candidate: Candidate) -> list[Candidate]:
    """The same drafter in all sizes worth trying, itself included."""
    option = sized(candidate.cls)
    if option is None:
        return [candidate]
    most = option.maximum or max(SIZES)
    sizes = sorted({candidate.size, *(size for size in SIZES if size <= most)})
    return [
        candidate if size == candidate.size else Candidate(candidate.cls, size, candidate.rule)
        for size in sizes
    ]


def by_other_rules(candidate: Candidate, sampling: Sampling) -> list[Candidate]:
    """The same drafter and size under every other rule that keeps the target's law."""
    cls, kinds = candidate.cls, candidate.cls.kinds(sampling)
    if sampling.greedy:
        return []  # all of them keep the same tokens
    return [
        Candidate(cls, candidate.size, key)
        for key, rule in verifiers().items()
        if key != candidate.rule
        and not rule.only_greedy
        and rule.lossless_with(kinds)
        and rule.judges(cls.shape, kinds)
    ]


def worth_trying(paths: ModelPaths, sampling: Sampling) -> list[type[Drafter]]:
    """The drafters whose parts are at hand, that keep the target's text, and of which a size can be chosen: those that declare one,
    and those that copy from the text without any model."""
    return [
        cls
        for cls in drafters().values()
        if (cls.size_option is not None or (cls.family == "retrieval" and not cls.needs))
        and not cls.about_pictures  # prompts are texts
        and cls.needs.keys() <= paths.parts.keys()
        and _obstacle(cls, sampling) is None
    ]


def chosen(
    keys: Iterable[str] | None, paths: ModelPaths, sampling: Sampling
) -> list[type[Drafter]]:
    """The drafters of these keys; None: those worth trying. Raises UserError for one that is unknown, whose parts are missing,
    or that cannot take part."""
    if keys is None:
        return worth_trying(paths, sampling)
    classes = [drafter(key) for key in dict.fromkeys(keys)]
    classes = [cls for cls in classes if cls.family != "none"]
    if not classes:
        raise UserError("Name a drafter to compare with plain decoding.")
    for cls in classes:
        check_parts(paths, cls.needs)
        if (obstacle := _obstacle(cls, sampling)) is not None:
            raise UserError(obstacle)
    return classes


def _obstacle(cls: type[Drafter], sampling: Sampling) -> str | None:
    """Why a drafter cannot take part, in a sentence."""
    if cls.loop != "speculative":
        return f"{cls.title} writes in a loop of its own and cannot share passes with other texts."
    if not rule_for(None, cls, sampling).lossless_with(cls.kinds(sampling)):
        return f"{cls.title} does not keep the target's text, so its speed cannot be compared."
    return None


def needed(classes: Collection[type[Drafter]]) -> Mapping[str, str]:
    """Role -> kind of all parts that these drafters take."""
    return {role: kind for cls in classes for role, kind in cls.needs.items()}
