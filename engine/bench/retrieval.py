"""`python -m engine bench --suite retrieval`: suffix decoding beside prompt lookup, greedy, in turns.

Three tables: texts on their own; requests that repeat earlier ones with a small change, where suffix
decoding remembers what it wrote; and the time and memory of a lookup against the length of the text.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from engine.bench.command import check_writable
from engine.bench.figures import geometric_mean
from engine.chance import DraftChance
from engine.drafters import drafter as drafter_class
from engine.drafters.base import Start
from engine.loops import run_loop
from engine.memory import Memory
from engine.options import resolve
from engine.parts.loading import ModelPaths, Models, load_models
from engine.sampling import Sampling
from engine.text import TextRequest
from engine.trace import write_lines
from engine.verifiers import verifier

KEYS = ("prompt_lookup", "suffix")
ALONE = ("edit", "operations")
REPEATED = 20  # requests
LENGTHS = (1_000, 10_000, 100_000)  # tokens of text in which is looked up
LOOKUPS = 200  # of which the median is taken
TOKENS = 96
OTHER_WORD = "garden"


@dataclass(frozen=True)
class Speed:
    """One drafter on one workload: tokens a second and tokens a pass, all prompts together."""

    workload: str
    drafter: str
    tokens_per_second: float
    tokens_per_pass: float


@dataclass(frozen=True)
class Lookup:
    """What a lookup costs in a text of so many tokens."""

    tokens: int
    drafter: str
    microseconds: float
    bytes: int | None


def retrieval(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one round and a fifth of the prompts."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {}, "float32", "cpu")
    rounds, share = (1, 5) if quick else (3, 1)
    speeds = []
    for name in ALONE:
        prompts = [card["prompt"] for card in workloads[name]][::share]
        speeds += compare(models, name, [(None, prompt) for prompt in prompts], rounds)
    every = interleaved(workloads)[: REPEATED // share]
    speeds += compare(models, "repeated", [(p, slightly_changed(p)) for p in every], rounds)
    texts = [card["prompt"] for cards in workloads.values() for card in cards]
    lookups = [
        lookup_cost(models, key, length, texts)
        for length in (LENGTHS[:2] if quick else LENGTHS)
        for key in KEYS
    ]
    print(table(speeds, lookups))
    if out is not None:
        data = {"speeds": [asdict(s) for s in speeds], "lookups": [asdict(c) for c in lookups]}
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def interleaved(workloads: Mapping[str, Sequence[dict]]) -> list[str]:
    """Prompts of all workloads in turn."""
    in_turn = itertools.zip_longest(*workloads.values())
    return [card["prompt"] for cards in in_turn for card in cards if card]


def slightly_changed(prompt: str) -> str:
    """The same request about something else: its last number one higher, or its last long word another."""
    numbers = list(re.finditer(r"\d+", prompt))
    if numbers:
        last = numbers[-1]
        return prompt[: last.start()] + str(int(last.group()) + 1) + prompt[last.end() :]
    words = list(re.finditer(r"\b[a-z]{4,}\b", prompt))
    if not words:
        return prompt
    return prompt[: words[-1].start()] + OTHER_WORD + prompt[words[-1].end() :]


def compare(
    models: Models, name: str, requests: Sequence[tuple[str | None, str]], rounds: int
) -> list[Speed]:
    """requests: (what was asked before, or None; the prompt). Of the rounds each prompt's median counts."""
    seconds: dict[str, list[float]] = {key: [] for key in KEYS}
    tokens, passes = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    memories = {key: Memory() for key in KEYS}
    for key in KEYS:
        for before, _ in requests:
            if before is not None:
                write(models, key, before, memories[key])
    for _, prompt in requests:
        taken: dict[str, list[float]] = {key: [] for key in KEYS}
        for turn in range(rounds):
            for key in KEYS:
                memory = copy.deepcopy(memories[key])  # or the second round would copy the first
                began = time.perf_counter()
                text, calls = write(models, key, prompt, memory)
                taken[key].append(time.perf_counter() - began)
                if turn == 0:
                    tokens[key] += len(text)
                    passes[key] += calls
        for key in KEYS:
            seconds[key].append(median(taken[key]) / len(text))
    return [
        Speed(name, key, 1 / geometric_mean(seconds[key]), tokens[key] / passes[key])
        for key in KEYS
    ]


def write(models: Models, key: str, prompt: str, memory: Memory) -> tuple[list[int], int]:
    """The tokens written after the prompt, and the passes of the target that it took."""
    cls = drafter_class(key)
    drafter = cls.build(resolve(key, cls.options, {}), models)
    tokens = models.target.tokenizer(prompt)["input_ids"]
    request = TextRequest(drafter, verifier("greedy"), Sampling(), tokens, TOKENS, memory=memory)
    text, passes = [], 0
    for step in run_loop(models.target, request, recorded=False):
        text += step.output
        passes += step.passes["target"]
    return text, passes


def lookup_cost(models: Models, key: str, length: int, texts: Sequence[str]) -> Lookup:
    """The median time of one proposal behind ``length`` tokens of these texts in random order."""
    cls = drafter_class(key)
    drafter = cls.build(resolve(key, cls.options, {}), models)
    encoded = [models.target.tokenizer(text)["input_ids"] for text in texts]
    rng, tokens = random.Random(0), []
    while len(tokens) < length + LOOKUPS:
        tokens += rng.choice(encoded)
    drafter.begin(Start(tokens[:length], Sampling(), DraftChance(0)))
    drafter.propose(tokens[:length], 16)
    taken = []
    for end in range(length + 1, length + LOOKUPS + 1):
        context = tokens[:end]
        began = time.perf_counter()
        drafter.propose(context, 16)
        taken.append(1e6 * (time.perf_counter() - began))
    index = getattr(drafter, "index", None)
    return Lookup(length, key, median(taken), None if index is None else index.nbytes)


def table(speeds: Sequence[Speed], lookups: Sequence[Lookup]) -> str:
    lines = [f"{'workload':12} {'drafter':14} {'tokens/s':>9} {'a pass':>7}"]
    lines += [
        f"{s.workload:12} {s.drafter:14} {s.tokens_per_second:9.1f} {s.tokens_per_pass:7.2f}"
        for s in speeds
    ]
    of = {(s.workload, s.drafter): s.tokens_per_second for s in speeds}
    for name in dict.fromkeys(s.workload for s in speeds):
        lines.append(
            f"suffix against prompt_lookup, {name}: {of[name, 'suffix'] / of[name, 'prompt_lookup']:.2f}"
        )
    lines.append(f"{'text':>12} {'drafter':14} {'lookup, µs':>11} {'memory, MB':>11}")
    for cost in lookups:
        memory = "" if cost.bytes is None else f"{cost.bytes / 1e6:.2f}"
        lines.append(f"{cost.tokens:12,} {cost.drafter:14} {cost.microseconds:11.0f} {memory:>11}")
    return "\n".join(lines)
