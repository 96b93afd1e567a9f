"""`python -m engine bench --suite load`: at which load does speculation stop paying, and does smartspec notice?

1 to 16 texts at a time are written greedily, with one pass of the target per round (``engine.batch.together``):
without drafts, with chains of fixed lengths, and with ``smartspec``, which chooses a length for each text and step.
When a text ends, the next begins in its place; the clock stops when there is none, so the load stays what it is. All
contestants write the same texts, so their tokens per second can be compared, and take turns of a fraction of a second,
so that a busy moment of the machine slows all of them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from engine.batch.together import decode_together
from engine.bench.command import check_writable, processor
from engine.bench.joined import requests, side_by_side
from engine.core.text import TextRequest
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, load_models
from engine.trace import write_lines

LOADS = (1, 2, 4, 8, 12, 16)
FIXED = (2, 4, 7)  # lengths of the chains
TOKENS, WARM_UP = 96, 48
QUEUE = 6  # least number of texts that wait for a place at first
TURN = 0.25  # seconds for which a contestant writes before it is the next one's turn
LEAST = 0.97
"""The share of the best other contestant's speed that smartspec must reach at every load."""


@dataclass(frozen=True)
class Row:
    """A given number of texts at a time. speeds: tokens per second of all texts together, by contestant. written: how
    many texts. equal: how many of them smartspec wrote as plain decoding did, as far as both came. ratio: the speed of
    smartspec, divided by that of the best other contestant in the same round; the median of the rounds."""

    texts: int
    speeds: Mapping[str, float]
    written: int
    equal: int
    ratio: float


def load(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: 1, 4 and 16 texts, once."""
    by_turns = zip(*workloads.values(), strict=False)
    prompts = [card["prompt"] for cards in by_turns for card in cards]
    loads = (1, 4, 16) if quick else LOADS
    run_load(paths, prompts, loads, 1 if quick else 3, out)


def contestants() -> dict[str, tuple[str, dict]]:
    """By name: drafter and options."""
    chains = {f"chain {n}": ("chain", {"length": n, "stop_below": 0.0}) for n in FIXED}
    return {"none": ("none", {}), **chains, "smartspec": ("smartspec", {})}


def run_load(
    paths: ModelPaths, prompts: Sequence[str], loads: Sequence[int], rounds: int, out: str | None
) -> list[Row]:
    """Measure, print a table, and write JSON where ``out`` says. Contestants take turns; the median of several
    rounds counts."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    beside = side_by_side(paths, models.target)
    read = [models.target.tokenizer(one)["input_ids"] for one in prompts]
    rows = []
    for count in loads:
        given = [read[place % len(read)] for place in range(count + max(2 * count, QUEUE))]
        speeds: dict[str, list[float]] = {name: [] for name in contestants()}
        texts: dict[str, list[list[int]]] = {}
        for turn in range(rounds + 1):
            tokens = TOKENS if turn else WARM_UP
            runs = {
                name: _Run(beside, requests(models, key, options, given, tokens)(), count)
                for name, (key, options) in contestants().items()
            }
            _take_turns([*runs.values()])
            for name, run in runs.items():
                texts[name] = run.texts
                speeds[name] += [run.speed] if turn else []
        usual = {name: median(found) for name, found in speeds.items()}
        equal = sum(map(_alike, texts["none"], texts["smartspec"]))
        best = max((name for name in usual if name != "smartspec"), key=usual.__getitem__)
        pairs = zip(speeds["smartspec"], speeds[best], strict=True)
        ratio = median(ours / theirs for ours, theirs in pairs)
        rows.append(Row(count, usual, len(given), equal, ratio))
    print(table(rows))
    if out is not None:
        data = {
            "target": models.target.name,
            "threads": torch.get_num_threads(),
            "processor": processor(),
            "rows": [asdict(row) for row in rows],
        }
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return rows


class _Run:
    """Texts under way, until fewer are left than there are places. texts: as far as they came."""

    def __init__(self, target: LanguageModel, requests: Sequence[TextRequest], places: int) -> None:
        self.texts: list[list[int]] = [[] for _ in requests]
        self._left, self._places, self._spent = len(requests), places, 0.0
        self._steps = decode_together(target, requests, places=places)

    @property
    def speed(self) -> float:
        """Tokens per second of all texts together."""
        return sum(map(len, self.texts)) / self._spent

    def go_on(self, seconds: float) -> bool:
        """Write for this long. Returns whether the run goes on."""
        began, spent = time.perf_counter(), 0.0
        for index, step in self._steps:
            self.texts[index] += step.output
            self._left -= step.stop is not None
            spent = time.perf_counter() - began
            if self._left < self._places or spent >= seconds:
                break
        self._spent += spent
        if self._left < self._places:
            self._steps.close()
        return self._left >= self._places


def _take_turns(runs: Sequence[_Run]) -> None:
    while runs:
        runs = [run for run in runs if run.go_on(TURN)]


def _alike(one: Sequence[int], other: Sequence[int]) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def table(rows: Sequence[Row]) -> str:
    names = list(contestants())
    lines = [f"{'texts':>5} " + " ".join(f"{name:>9}" for name in names) + f" {'ratio':>6}"]
    for row in rows:
        speeds = " ".join(f"{row.speeds[name]:9.1f}" for name in names)
        lines.append(f"{row.texts:5} {speeds} {row.ratio:6.2f}")
    least = min(row.ratio for row in rows)
    lines.append(
        f"tokens a second of all texts; ratio: smartspec by the best of the others, at least {least:.2f} "
        f"({'met' if least >= LEAST else 'missed'}: {LEAST})"
    )
    alike, every = sum(row.equal for row in rows), sum(row.written for row in rows)
    lines.append(f"{alike} of {every} texts written alike")
    return "\n".join(lines)
