"""The measuring loop: rounds and prompts outside, contestants inside, so that all meet the same
machine load."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bench.contestants import Contestant, Writing

WARM_UP_TOKENS = 16


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
    """Every contestant continues every prompt by ``count`` tokens, ``rounds`` times, in turn.

    Another contestant begins with each prompt. tick() is called after each continuation. Before that, every contestant
    begins every prompt once, because the first pass over so many rows is prepared, by this engine as by others.
    """
    for prompt in prompts:
        for contestant in contestants:
            contestant.write(prompt.tokens, WARM_UP_TOKENS)
    results = []
    for number in range(rounds):
        for index, prompt in enumerate(prompts):
            turn = (index + number) % len(contestants)
            for contestant in [*contestants[turn:], *contestants[:turn]]:
                writing = contestant.write(prompt.tokens, count)
                results.append(Result(contestant.name, prompt, number, writing))
                tick()
    return results
