"""`python -m engine bench --suite online`: whether a draft that learns while it is used comes to be kept more often.

Greedy requests of one narrow kind that the embedded draft was not made for: records whose field names and values are
invented words. The draft has read neither how these words are spelled nor in which order the fields follow one another.
The embedded target has not either: it repeats pieces of the records, more than it writes new ones, and these pieces are
what the draft can learn. All requests share one ``Memory``, and ``online`` learns
after every few refusals, so that no clock decides and the figures can be repeated. ``chain``, with the same length and
stop, drafts for the same requests as the control: what it gains is due to the requests alone.

At the end the memory is emptied, and the first request must be drafted exactly as it was at the beginning.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.bench.command import check_writable
from engine.core.memory import Memory
from engine.core.options import Value, resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafter
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines

REQUESTS, QUICK, TOKENS = 50, 12, 32
SPAN = 10  # requests at either end that are compared
GOAL = 0.1  # by how much more than chain's the kept share is to climb
DRAFTING: Mapping[str, Value] = {"length": 4, "stop_below": 0.0}
LEARNING: Mapping[str, Value] = {"milliseconds": 0.0, "every": 2}
OPTIONS: Mapping[str, Mapping[str, Value]] = {"chain": DRAFTING, "online": DRAFTING | LEARNING}


@dataclass(frozen=True)
class Drafted:
    """One request. judged: drafted tokens that the walk reached, ``kept`` of which were kept."""

    kept: int
    judged: int
    steps: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """online, chain: the requests in order. again: the first request of ``online`` with the memory emptied."""

    online: Sequence[Drafted]
    chain: Sequence[Drafted]
    again: Drafted

    @property
    def span(self) -> int:
        """The requests at either end that are compared; no request is at both."""
        return min(SPAN, max(1, len(self.online) // 2))

    @property
    def gain(self) -> float:
        """The climb of ``online`` minus that of ``chain``."""
        return climb(self.online, self.span) - climb(self.chain, self.span)

    @property
    def verdict(self) -> str:
        """Few requests are not judged: they show too little learning."""
        if len(self.online) < REQUESTS:
            return f"not judged with {len(self.online)} requests"
        return "met" if self.gain >= GOAL else "missed"

    @property
    def forgotten(self) -> bool:
        """Whether nothing was left once the memory was emptied."""
        first = self.online[0]
        return (first.kept, first.judged, first.steps) == (
            self.again.kept,
            self.again.judged,
            self.again.steps,
        )


def online(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: few requests, and the goal is not judged."""
    run_online(paths, records(QUICK if quick else REQUESTS), out)


def records(count: int) -> list[str]:
    """Requests of three records each, and the beginning of a fourth. The fields have the same names in all of them,
    and their values come from one small set."""
    words = random.Random("online/words")
    fields = [_invented(words) for _ in range(4)]
    values = [_invented(words).capitalize() for _ in range(12)]
    requests = []
    for place in range(count):
        rng = random.Random(f"online/{place}")
        lines = [_record(rng, number, fields, values) for number in (1, 2, 3)]
        requests.append("".join([*lines, f"{fields[0]} 4:"]))
    return requests


def _invented(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3))


def _record(rng: random.Random, number: int, fields: list[str], values: list[str]) -> str:
    head, one, two, three = fields
    first, last, size = rng.choice(values), rng.choice(values), rng.randint(10, 99)
    return f"{head} {number}: {one} {first}, {two} {size}, {three} {last};\n"


def run_online(paths: ModelPaths, requests: Sequence[str], out: str | None) -> Result:
    """Measure, print a table, and write JSON where ``out`` says."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    prompts = [models.target.tokenizer(one)["input_ids"] for one in requests]
    memory = Memory()

    def drafted(key: str, prompt: list[int]) -> Drafted:
        return draft(models, key, prompt, memory)

    with torch_threads(models.target.torch_threads):
        result = measured(prompts, drafted, memory.reset)
    print(table(result))
    if out is not None:
        data = asdict(result) | {"options": OPTIONS, "gain": result.gain}
        data |= {"verdict": result.verdict, "forgotten": result.forgotten}
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1, default=dict) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return result


def measured(
    prompts: Sequence[list[int]],
    drafted: Callable[[str, list[int]], Drafted],
    reset: Callable[[], None],
) -> Result:
    """reset: empties the memory that the requests share."""
    own = [drafted("online", prompt) for prompt in prompts]
    control = [drafted("chain", prompt) for prompt in prompts]
    reset()
    return Result(own, control, drafted("online", prompts[0]))


def draft(models: Models, key: str, prompt: list[int], memory: Memory) -> Drafted:
    cls = drafter(key)
    made = cls.build(resolve(key, cls.options, OPTIONS[key]), models)
    request = TextRequest(made, verifier("greedy"), Sampling(), prompt, TOKENS, memory=memory)
    steps = list(run_loop(models.target, request, recorded=False))
    kept = [len(step.verdict.accepted) for step in steps]
    judged = sum(min(n + 1, len(step.tree)) for n, step in zip(kept, steps, strict=True))
    tokens = tuple(token for step in steps for token in step.output)
    return Drafted(sum(kept), judged, len(steps), tokens)


def share(some: Sequence[Drafted]) -> float:
    """The share of judged tokens that was kept, over all of these requests."""
    return sum(one.kept for one in some) / max(1, sum(one.judged for one in some))


def climb(some: Sequence[Drafted], span: int) -> float:
    """The kept share of the last ``span`` requests minus that of the first."""
    return share(some[-span:]) - share(some[:span])


def table(result: Result) -> str:
    span = result.span
    lines = [f"{'kept share':10} {f'first {span}':>9} {f'last {span}':>9} {'climb':>7}"]
    for name, some in (("online", result.online), ("chain", result.chain)):
        first, last = share(some[:span]), share(some[-span:])
        lines.append(f"{name:10} {first:9.3f} {last:9.3f} {last - first:+7.3f}")
    lines.append(
        f"online climbs {result.gain:+.3f} beside chain (goal: {GOAL} or more; {result.verdict})"
    )
    pairs = list(zip(result.online, result.chain, strict=True))
    alike = sum(one.tokens == other.tokens for one, other in pairs)
    lines.append(f"{alike} of {len(pairs)} texts written alike by both")
    first, again = (
        f"{share([one]):.3f} kept in {one.steps} steps" for one in (result.online[0], result.again)
    )
    same = "the same" if result.forgotten else "NOT the same"
    lines.append(
        f"the first request with the memory emptied: {again}, {same} as at the beginning ({first})"
    )
    return "\n".join(lines)
