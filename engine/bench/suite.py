"""A suite: contestants write after prompts, in turn, and their steps are counted. Rounds and prompts are outside,
contestants inside, so that all meet the same machine load."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from tqdm import tqdm

from engine.bench.contestants import Contestant, Counters, Writing
from engine.fast.cpu.budget import graph_memory
from engine.parts.loading import Models

Cards = Mapping[str, Sequence[Mapping[str, str]]]
"""By workload: prompts as presets hold them, {"id", "prompt"}."""


@dataclass(frozen=True)
class Prompt:
    """workload: the kind of prompt. tokens: as fed to the target. count: tokens written after it, where not as many as
    after all others."""

    workload: str
    name: str
    tokens: Sequence[int]
    count: int | None = None


@dataclass(frozen=True)
class Plan:
    """How much is measured. prompts: per workload. tokens: written after each prompt."""

    prompts: int
    rounds: int
    tokens: int


@dataclass(frozen=True)
class Result:
    """One continuation of one prompt by one contestant in one round."""

    contestant: str
    prompt: Prompt
    round: int
    writing: Writing


@dataclass(frozen=True)
class Suite:
    """counters: what is counted besides the usual. warm_up: before the clock runs.

    ``text``: before a text is timed, its contestant writes it once. So everything that the text needs is made, here as in
    other engines, and the caches hold the contestant's own weights, whoever ran before it and in whatever process.
    ``once``: each contestant writes one text. ``never``: for suites that only count. enough: asked before each prompt whether
    to stop there.
    """

    contestants: Sequence[Contestant]
    prompts: Sequence[Prompt]
    plan: Plan
    counters: Counters = field(default_factory=dict)
    warm_up: Literal["text", "once", "never"] = "never"
    enough: Callable[[], bool] = lambda: False

    def run(self) -> list[Result]:
        """Every contestant continues every prompt in every round; another one begins with each prompt. The results are
        in the order of workloads and contestants."""
        results = []
        total = len(self.contestants) * len(self.prompts) * self.plan.rounds
        with graph_memory().unbounded(), tqdm(total=total, leave=False, disable=None) as progress:
            for contestant in self.contestants if self.warm_up == "once" else ():
                self._write(contestant, self.prompts[0])
            for number, prompt, contestant in self._turns():
                if self.warm_up == "text":
                    self._write(contestant, prompt)
                writing = self._write(contestant, prompt)
                results.append(Result(contestant.name, prompt, number, writing))
                progress.update()
        workloads = list(dict.fromkeys(prompt.workload for prompt in self.prompts))
        names = [contestant.name for contestant in self.contestants]
        return sorted(
            results,
            key=lambda result: (
                workloads.index(result.prompt.workload),
                names.index(result.contestant),
            ),
        )

    def _turns(self) -> Iterator[tuple[int, Prompt, Contestant]]:
        for number in range(self.plan.rounds):
            for index, prompt in enumerate(self.prompts):
                if self.enough() or not self.contestants:
                    return
                turn = (index + number) % len(self.contestants)
                for contestant in [*self.contestants[turn:], *self.contestants[:turn]]:
                    yield number, prompt, contestant

    def _write(self, contestant: Contestant, prompt: Prompt) -> Writing:
        count = self.plan.tokens if prompt.count is None else prompt.count
        return contestant.write(prompt.tokens, count, self.counters)


def by_workload(result: Result) -> tuple[str, str]:
    return result.prompt.workload, result.contestant


def by_contestant(result: Result) -> str:
    return result.contestant


def sums(
    results: Sequence[Result], by: Callable[[Result], Any] = by_workload
) -> dict[Any, Counter[str]]:
    """For each group of results the sums of all counts, and of ``texts``, ``tokens``, ``seconds``, ``calls`` and the
    milliseconds of each stage."""
    groups: dict[Any, Counter[str]] = {}
    for result in results:
        writing, group = result.writing, groups.setdefault(by(result), Counter())
        group.update(writing.stages)
        group.update(writing.counts)
        group.update(
            texts=1, tokens=len(writing.tokens), seconds=writing.seconds, calls=writing.calls
        )
    return groups


def alike(results: Sequence[Result], reference: str) -> dict[str, int]:
    """By contestant, how many of its texts in the first round are those of the reference."""
    first = [result for result in results if result.round == 0]
    right = {
        (result.prompt.workload, result.prompt.name): result.writing.tokens
        for result in first
        if result.contestant == reference
    }
    equal = dict.fromkeys((result.contestant for result in first), 0)
    for result in first:
        expected = right[result.prompt.workload, result.prompt.name]
        equal[result.contestant] += result.writing.tokens == expected
    return equal


def turn_of(tokenizer, text: str) -> list[int]:
    """The text as a user's turn where there is a chat template, else as it is."""
    if not tokenizer.chat_template:
        return tokenizer(text)["input_ids"]
    turn = [{"role": "user", "content": text}]
    rendered = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return tokenizer(rendered, add_special_tokens=False)["input_ids"]


def choose(models: Models, workloads: Cards, plan: Plan, turns: bool = False) -> list[Prompt]:
    """Prompts that leave room for the tokens to be written, evenly spread over each workload. turns: each is a user's turn."""
    room, tokenizer = models.target.max_context - plan.tokens, models.target.tokenizer
    encode = partial(turn_of, tokenizer) if turns else lambda text: tokenizer(text)["input_ids"]
    chosen = []
    for workload, cards in workloads.items():
        prompts = [Prompt(workload, card["id"], encode(card["prompt"])) for card in cards]
        fitting = [prompt for prompt in prompts if 0 < len(prompt.tokens) <= room]
        chosen += fitting[:: max(1, len(fitting) // plan.prompts)][: plan.prompts]
    return chosen


def in_turn(workloads: Cards) -> list[str]:
    """The prompts of all workloads in turn, as long as all have one."""
    by_turns = zip(*workloads.values(), strict=False)
    return [card["prompt"] for cards in by_turns for card in cards]
