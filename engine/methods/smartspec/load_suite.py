"""`python -m engine bench --suite load`: at which load does speculation stop paying, and does smartspec notice?

1 to 16 texts at a time are written greedily, with one pass of the target per round (``engine.batch.together``): without
drafts, with chains of fixed lengths, and with ``smartspec``, which chooses a length for each text and step. When a text
ends, the next one begins in its place. The clock stops when no text is left to begin, so the load stays constant. All
contestants write the same texts, so their tokens per second can be compared. They take turns of a fraction of a second,
so a busy moment of the machine slows all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

from engine.batch.together import decode_together
from engine.bench.contestants import Ours, chain, plain
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, in_turn
from engine.core.step import Step
from engine.methods.smartspec.drafter import SmartSpecDrafter
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models

Steps = Iterator[tuple[int, Step]]
"""Pairs of a text's index and a step of this text."""
LOADS, QUICK_LOADS, ROUNDS = (1, 2, 4, 8, 12, 16), (1, 4, 16), 3
FIXED = (2, 4, 7)  # lengths of the chains
TOKENS, WARM_UP = 96, 48
QUEUE = 6  # at the start at least this many texts wait for a place
TURN = 0.25  # seconds for which a contestant writes before the next contestant's turn
LEAST = 0.97
"""The least ratio that the suite demands at every load: smartspec's speed divided by that of the best other
contestant."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report has these entries. texts: the number of texts at a time. speeds: for each
    contestant, the tokens per second of all texts together, as the median of the repetitions. written: the number of
    texts in total. equal: for how many texts the output of smartspec and that of plain decoding are the same, up to the
    end of the shorter output. ratio: the speed of smartspec divided by that of the best other contestant in the same
    repetition, as the median of the repetitions."""
    models = load_models(paths, chain().needs, "float32", "cpu")
    prompts = [
        models.target.tokenizer(contestant)["input_ids"] for contestant in in_turn(workloads)
    ]
    loads, rounds = (QUICK_LOADS, 1) if quick else (LOADS, ROUNDS)
    rows = []
    for count in loads:
        texts = [prompts[place % len(prompts)] for place in range(count + max(2 * count, QUEUE))]
        speeds: dict[str, list[float]] = {}
        for turn in range(rounds + 1):
            tokens = TOKENS if turn else WARM_UP
            runs = {
                contestant.name: joined(contestant, models.target, texts, tokens, count)
                for contestant in contestants(models)
            }
            _take_turns([*runs.values()])
            for name, run in runs.items() if turn else ():
                speeds.setdefault(name, []).append(run.speed)
        median_speeds = {name: median(speed) for name, speed in speeds.items()}
        *others, own = median_speeds
        best = max(others, key=median_speeds.__getitem__)
        row = {"texts": count, "speeds": median_speeds, "written": len(texts)}
        row["equal"] = sum(map(_alike, runs[others[0]].tokens, runs[own].tokens))
        row["ratio"] = median(map(float.__truediv__, speeds[own], speeds[best]))
        rows.append(row)
    least = min(row["ratio"] for row in rows)
    same, every = (sum(row[name] for row in rows) for name in ("equal", "written"))
    verdict = "met" if least >= LEAST else "missed"
    columns = ["texts", *(f"{name}:.1f" for name in rows[0]["speeds"]), "ratio:.2f"]
    text = (
        f"{table([row | row['speeds'] for row in rows], columns)}\ntokens a second of all texts; ratio: smartspec by "
        f"the best of the others, at least {least:.2f} ({verdict}: {LEAST})\n{same} of {every} texts written alike"
    )
    return Report(text, setting(models, rows=rows))


def contestants(models: Models) -> list[Ours]:
    """Return the contestants, plain decoding first and smartspec last."""
    fixed = [
        Ours(chain(), models, f"{chain().key} {length}", {"length": length, "stop_below": 0.0})
        for length in FIXED
    ]
    return [Ours(plain(), models, options={}), *fixed, Ours(SmartSpecDrafter, models, options={})]


def _take_turns(runs: Sequence[Texts]) -> None:
    while runs:
        runs = [run for run in runs if run.go_on(TURN)]


def _alike(one: Sequence[int], other: Sequence[int]) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


class Texts:
    """Texts that are being written, until fewer texts are unfinished than can be written at a time. tokens: for each
    text, its tokens so far."""

    def __init__(self, steps: Steps, count: int, places: int) -> None:
        """steps: the steps of ``count`` texts. places: the number of texts that are written at a time."""
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self._steps, self._left, self._places, self._spent = steps, count, places, 0.0

    @property
    def speed(self) -> float:
        """Tokens per second of all texts together."""
        return sum(map(len, self.tokens)) / self._spent

    def go_on(self, seconds: float = float("inf")) -> bool:
        """Write for this many seconds. Returns whether there are still enough unfinished texts to go on."""
        began, spent = time.perf_counter(), 0.0
        for index, step in self._steps:
            self.tokens[index] += step.output
            self._left -= step.stop is not None
            spent = time.perf_counter() - began
            if self._left < self._places or spent >= seconds:
                break
        self._spent += spent
        if self._left < self._places:
            self._steps.close()
        return self._left >= self._places


def joined(
    contestant: Ours,
    target: LanguageModel,
    prompts: Sequence[Sequence[int]],
    count: int,
    places: int,
) -> Texts:
    """Return the ``Texts`` that a contestant writes, ``places`` at a time, with one pass of ``target`` per round and at
    most ``count`` tokens each. When a text ends, the next one begins. The clock stops when a text ends and no other
    text is left to begin, so the load is constant."""
    requests = [contestant.request(prompt, count) for prompt in prompts]
    steps = decode_together(target, requests, places=places)
    return Texts(steps, len(prompts), places)
