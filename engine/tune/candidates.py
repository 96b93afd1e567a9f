"""The candidates of a tuning: drafters in several sizes, each with a rule that keeps the target's own text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise

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
"""The key in ``Candidate.counts`` of the counts over prompts of all kinds."""

Key = tuple[str, int, str]
"""(key of a drafter, draft size, key of a rule), by which a candidate is identified."""


@dataclass
class Candidate:
    """A drafter with a draft size and a rule, and the counts of the texts that it has written so far.

    size: the value of the option ``sized``; for a drafter without this option, the most nodes of its drafts. prompts:
    the candidate has continued each of the first ``prompts`` prompts. counts: kind of prompt -> counts, and ``ALL`` ->
    counts over all kinds. beside: the number of tokens, and the milliseconds, of plain decoding's texts for these
    prompts. Those texts were written at about the same time as the candidate's, because the machine may be busier at
    other times. earlier: number of prompts -> the counts of all kinds and ``beside`` as they were after this many
    prompts.
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
        """The fields by which the lines of a record identify this candidate."""
        return {
            "drafter": self.cls.key,
            "options": self.options,
            "size": self.size,
            "verifier": self.rule,
        }

    def request(
        self, models: Models, prompt: ChatPrompt, sampling: Sampling, count: int
    ) -> TextRequest:
        """The request to continue a prompt by at most ``count`` tokens, with a new drafter, a new rule and an empty
        memory, so that the drafter knows nothing of other texts."""
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
        """Continue a prompt, and yield the steps of the text. The engine's lock is held only during each step, so other
        runs can take their steps in between."""
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
        """Write a text and return its counts. text: the other arguments of ``steps``."""
        # on a GPU only recorded steps say what was judged
        return counted(self.steps(models, *text, recorded=models.target.asynchronous))

    def add(self, kind: str, counts: Counts, plainly: Counts) -> None:
        """Add the counts of the candidate's continuation of the next prompt (``counts``) and of plain decoding's
        continuation of that prompt (``plainly``). kind: the kind of the prompt."""
        for name in (kind, ALL):
            self.counts.setdefault(name, Counts()).add(counts)
        tokens, spent = self.beside
        self.beside = tokens + plainly.new_tokens, spent + plainly.spent
        self.wrote(self.prompts + 1)

    def wrote(self, prompts: int) -> None:
        """Note that the continuations of the first ``prompts`` prompts have been counted, and store a copy of the
        counts in ``earlier``."""
        self.prompts = prompts
        self.earlier[prompts] = deepcopy(self.all), self.beside

    def after(self, prompts: int) -> Candidate:
        """A copy of the candidate with its counts as they were once ``prompts`` prompts had been counted, for all kinds
        together; with the present counts if ``earlier`` has no copy for that number."""
        counts, beside = self.earlier.get(prompts, (self.all, self.beside))
        return replace(self, prompts=prompts, counts={ALL: counts}, beside=beside)

    def prompt_costs(self, prompts: int) -> list[float] | None:
        """For each of the first ``prompts`` prompts, the time of a token as a multiple of plain decoding's. None unless
        the counts after every one of these prompts are stored."""
        known = [(Counts(), (0, 0.0)), *map(self.earlier.get, range(1, prompts + 1))]
        if None in known:
            return None
        costs = []
        for (before, plainly), (after, beside) in pairwise(known):
            spent, usual = after.spent - before.spent, beside[1] - plainly[1]
            tokens, plain_tokens = after.new_tokens - before.new_tokens, beside[0] - plainly[0]
            if not (tokens and usual):
                return None
            costs.append(spent / tokens * plain_tokens / usual)
        return costs


def plain(sampling: Sampling) -> Candidate:
    """The candidate for plain decoding, with which all others are compared."""
    cls = next(cls for cls in drafters().values() if cls.family == "none")
    return Candidate(cls, 0, cls.own_rule(sampling))


def sized(cls: type[Drafter]) -> Option | None:
    """The drafter's option that sets how many tokens are drafted; None if the drafter has no such option."""
    name = cls.size_option or "length"
    return next((o for o in cls.options if o.name == name and o.type == "int"), None)


def usual(cls: type[Drafter], sampling: Sampling, models: Models | None = None) -> Candidate:
    """The candidate with the drafter's usual size and the drafter's own rule. models: needed only for a drafter
    without a size option. The drafter is built with these models, and its ``most_nodes`` is the size."""
    option = sized(cls)
    if option is None:
        size = (
            0 if models is None else cls.build(resolve(cls.key, cls.options, {}), models).most_nodes
        )
    else:
        size = int(option.default) or cls.usual_size
    return Candidate(cls, size, cls.own_rule(sampling))


def at_first(cls: type[Drafter], sampling: Sampling, models: Models) -> list[Candidate]:
    """Two candidates of a drafter: its usual size, and the largest size worth trying, because some drafters are good
    only with long drafts. One candidate if both sizes are equal."""
    candidate = usual(cls, sampling, models)
    return list({each.size: each for each in (candidate, in_sizes(candidate)[-1])}.values())


def in_sizes(candidate: Candidate) -> list[Candidate]:
    """The candidates with the same drafter and rule in all sizes worth trying; the given candidate is one of them."""
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
    """The candidates with the same drafter and size under every other rule that keeps the target's law. None at
    temperature 0, where all rules keep the same tokens."""
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
    """The drafters that are tried if the user names none. Their models are present, they keep the target's law, and
    they either have a size option or copy from the text without a model."""
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
    """The drafters with these keys; for None, the drafters of ``worth_trying``. Raises UserError for a key that is
    unknown, or for a drafter whose models are missing or that cannot take part in a tuning."""
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
    """A sentence that says why a drafter cannot take part in a tuning; None if it can."""
    if cls.loop != "speculative":
        return f"{cls.title} writes in a loop of its own and cannot share passes with other texts."
    if not rule_for(None, cls, sampling).lossless_with(cls.kinds(sampling)):
        return f"{cls.title} does not keep the target's text, so its speed cannot be compared."
    return None


def needed(classes: Collection[type[Drafter]]) -> Mapping[str, str]:
    """Role -> kind, for all models besides the target that these drafters need."""
    return {role: kind for cls in classes for role, kind in cls.needs.items()}
