"""The measuring loop: rounds and prompts outside, contestants inside, so that all meet the same
machine load."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bench.contestants import Contestant, Writing
from engine.fast.cpu.budget import graph_memory


@dataclass(frozen=True)
class Prompt:
    """workload: the kind of prompt. tokens: as fed to the target."""

    workload: str
    name: str
    tokens: Sequence[int]


@dataclass(frozen=True)
class Result:
    """One continuation of one prompt by one contestant in one round."""

    contestant: str
    prompt: Prompt
    round: int
    writing: Writing


def race(
    contestants: Sequence[Contestant],
    prompts: Sequence[Prompt],
    rounds: int,
    count: int,
    tick: Callable[[], None],
) -> list[Result]:
    """Every contestant continues every prompt by ``count`` tokens, ``rounds`` times, in turn; another contestant begins
    with each prompt. tick() is called after each continuation.

    Before a continuation is timed, its contestant writes the same text once. So everything that the text needs is made,
    here as in other engines, and the caches hold the contestant's own weights, whoever ran before it and in whatever
    process.
    """
    results = []
    with graph_memory().unbounded():
        for number in range(rounds):
            for index, prompt in enumerate(prompts):
                turn = (index + number) % len(contestants)
                for contestant in [*contestants[turn:], *contestants[:turn]]:
                    contestant.write(prompt.tokens, count)
                    writing = contestant.write(prompt.tokens, count)
                    results.append(Result(contestant.name, prompt, number, writing))
                    tick()
    return results
