"""`python -m engine bench --suite online`: whether more drafted tokens are kept the longer a draft learns in use.

The requests are greedy and of one narrow kind for which the embedded draft model was not trained: records whose field
names and values are invented words. The draft model knows neither the spelling of these words nor the order of the
fields. The embedded target does not know them either; it mostly repeats pieces of the records, and these pieces are
what the draft model can learn. All requests share one ``Memory``, and ``online`` learns after every few refusals, so no
clock decides and the figures can be repeated. ``chain``, with the same length and stop, is the control: what it gains
over the same requests is due to the requests alone.

At the end the memory is emptied. Then the first request must be drafted exactly as it was at the beginning.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.bench.contestants import Ours, chain
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Result, Suite, alike, choose
from engine.core.memory import Memory
from engine.core.options import Value
from engine.methods.online.drafter import OnlineDrafter
from engine.parts.loading import ModelPaths, load_models

REQUESTS, QUICK, TOKENS = 50, 12, 32
SPAN = 10  # so many first requests are compared with as many last ones
GOAL = 0.1  # the kept share of online should climb by this much more than that of chain
DRAFTING: Mapping[str, Value] = {"length": 4, "stop_below": 0.0}
OPTIONS = {"online": {**DRAFTING, "milliseconds": 0.0, "every": 2}, "chain": DRAFTING}
COUNTERS = {"judged": lambda step: min(len(step.verdict.accepted) + 1, len(step.tree))}


@dataclass(frozen=True)
class Learning:
    """The outcome of the suite. online, chain: for each request in order, its counts: ``judged``, how many drafted
    tokens the rule judged, and ``kept``, how many of these were kept. again: the counts of the first request of
    ``online``, repeated with the memory emptied."""

    online: Sequence[Mapping[str, float]]
    chain: Sequence[Mapping[str, float]]
    again: Mapping[str, float]

    @property
    def span(self) -> int:
        """How many requests at the beginning are compared with as many at the end; the two groups have no request in
        common."""
        return min(SPAN, max(1, len(self.online) // 2))

    def ends(self, some: Sequence[Mapping[str, float]]) -> tuple[float, float]:
        """Return two shares of drafted tokens that were kept: in the first ``span`` requests, and in the last
        ``span``."""
        return share(some[: self.span]), share(some[-self.span :])

    @property
    def gain(self) -> float:
        """How much more the share of kept tokens rose from the first requests to the last with ``online`` than with
        ``chain``."""
        (first, last), (begin, end) = self.ends(self.online), self.ends(self.chain)
        return (last - first) - (end - begin)

    @property
    def verdict(self) -> str:
        """The verdict: "met" or "missed"; with few requests, that the goal is not judged because there was too little
        to learn from."""
        if len(self.online) < REQUESTS:
            return f"not judged with {len(self.online)} requests"
        return "met" if self.gain >= GOAL else "missed"

    @property
    def forgotten(self) -> bool:
        """Whether the first request, repeated after the memory was emptied, had the same counts as at the beginning."""
        names = ("kept", "judged", "steps")
        return all(self.online[0][name] == self.again[name] for name in names)


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. quick: run few requests, and do not judge the goal."""
    models, texts = (
        load_models(paths, chain().needs, "float32", "cpu"),
        records(QUICK if quick else REQUESTS),
    )
    cards = [{"id": str(place), "prompt": text} for place, text in enumerate(texts)]
    plan, memory = Plan(prompts=len(cards), rounds=1, tokens=TOKENS), Memory()
    own = Ours(OnlineDrafter, models, "online", OPTIONS["online"], memory=lambda: memory)
    control = Ours(chain(), models, "chain", OPTIONS["chain"])
    prompts = choose(models, {"records": cards}, plan)
    results = Suite([own, control], prompts, plan, COUNTERS).run()
    memory.reset()
    again = Suite([own], prompts[:1], plan, COUNTERS).run()
    learning = Learning(
        _drafted(results, "online"), _drafted(results, "chain"), *_drafted(again, "online")
    )
    lines = [
        report_text(learning),
        f"{alike(results, 'chain')['online']} of {len(prompts)} texts written alike by both",
    ]
    data = {
        "online": learning.online,
        "chain": learning.chain,
        "again": learning.again,
        "options": OPTIONS,
    }
    data |= {"gain": learning.gain, "verdict": learning.verdict, "forgotten": learning.forgotten}
    return Report("\n".join(lines), data)


def _drafted(results: Sequence[Result], name: str) -> list[dict]:
    own = [result.writing for result in results if result.contestant == name]
    return [
        figures(writing.counts, kept="accepted", judged="judged", steps="steps")
        | {"tokens": writing.tokens}
        for writing in own
    ]


def records(count: int) -> list[str]:
    """Return ``count`` requests, each with three records and the beginning of a fourth. The fields have the same names
    in all requests, and their values come from one small set."""
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


def share(requests: Sequence[Mapping[str, float]]) -> float:
    """Return the kept tokens of all these requests as a share of their judged tokens."""
    return sum(request["kept"] for request in requests) / max(
        1, sum(request["judged"] for request in requests)
    )


def report_text(learning: Learning) -> str:
    rows = []
    for name, requests in (("online", learning.online), ("chain", learning.chain)):
        first, last = learning.ends(requests)
        rows.append({"kept share": name, "first": first, "last": last, "climb": last - first})
    columns = [
        "kept share",
        f"first {learning.span}=first:.3f",
        f"last {learning.span}=last:.3f",
        "climb:+.3f",
    ]
    first, again = (
        f"{share([run]):.3f} kept in {run['steps']} steps"
        for run in (learning.online[0], learning.again)
    )
    equal = "the same" if learning.forgotten else "NOT the same"
    return (
        f"{table(rows, columns)}\n"
        f"online climbs {learning.gain:+.3f} beside chain (goal: {GOAL} or more; {learning.verdict})\n"
        f"the first request with the memory emptied: {again}, {equal} as at the beginning ({first})"
    )
