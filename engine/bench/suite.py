"""Runs a suite: contestants take turns to continue prompts, and their steps are counted. All contestants continue a
prompt before the next prompt comes, so that all of them meet the same machine load."""

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
"""Prompts by workload, each as {"id", "prompt"}, the form in which presets hold them."""


@dataclass(frozen=True)
class Prompt:
    """A prompt of a suite. workload: the kind of prompt. tokens: the prompt's tokens, as fed to the target. count: by
    how many tokens this prompt is continued; None means as many as the plan says."""

    workload: str
    name: str
    tokens: Sequence[int]
    count: int | None = None


@dataclass(frozen=True)
class Plan:
    """How much is measured. prompts: number of prompts per workload. rounds: how often each prompt is continued.
    tokens: the most tokens by which a prompt is continued."""

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
    """A comparison of contestants on prompts.

    counters: counters in addition to ``USUAL``. warm_up: which texts are written without being timed. With ``text``, a
    contestant writes each text once just before the timed run. So graphs are compiled and buffers have grown before the
    clock starts, for this engine and other engines alike, and the processor's caches hold the contestant's own weights.
    With ``once``, each contestant writes one text when the suite begins. With ``never``, nothing is written in advance,
    which suits suites that only count. enough: called before each prompt; if it returns True, the suite ends.
    """

    contestants: Sequence[Contestant]
    prompts: Sequence[Prompt]
    plan: Plan
    counters: Counters = field(default_factory=dict)
    warm_up: Literal["text", "once", "never"] = "never"
    enough: Callable[[], bool] = lambda: False

    def run(self) -> list[Result]:
        """Let every contestant continue every prompt in every round. The contestants' order changes from prompt to
        prompt, so that each of them is sometimes the first. Returns the results, sorted by workload and contestant."""
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
    """For each group of results, the sums of all counters, of ``texts``, ``tokens``, ``seconds`` and ``calls``, and of
    the milliseconds of each stage. by: returns the group of a result."""
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
    """The number of each contestant's texts in the first round that equal the reference's. reference: a contestant's
    name."""
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
    """The tokens of a text, which is wrapped as a user's turn if the tokenizer has a chat template."""
    if not tokenizer.chat_template:
        return tokenizer(text)["input_ids"]
    turn = [{"role": "user", "content": text}]
    rendered = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return tokenizer(rendered, add_special_tokens=False)["input_ids"]


def choose(models: Models, workloads: Cards, plan: Plan, turns: bool = False) -> list[Prompt]:
    """The prompts of a suite. They are taken at even distances from each workload's list of prompts; prompts that leave
    no room for the tokens to be written are left out. turns: whether to wrap each prompt as a user's turn."""
    room, tokenizer = models.target.max_context - plan.tokens, models.target.tokenizer
    encode = partial(turn_of, tokenizer) if turns else lambda text: tokenizer(text)["input_ids"]
    chosen = []
    for workload, cards in workloads.items():
        prompts = [Prompt(workload, card["id"], encode(card["prompt"])) for card in cards]
        fitting = [prompt for prompt in prompts if 0 < len(prompt.tokens) <= room]
        chosen += fitting[:: max(1, len(fitting) // plan.prompts)][: plan.prompts]
    return chosen


def in_turn(workloads: Cards) -> list[str]:
    """The prompts of all workloads, one of each workload in turn, until one workload has no more."""
    by_turns = zip(*workloads.values(), strict=False)
    return [card["prompt"] for cards in by_turns for card in cards]
