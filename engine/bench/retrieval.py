"""`python -m engine bench --suite retrieval`: drafters that look things up, greedy, in turns.

Speeds on the workloads as they are, on requests that repeat earlier ones with a small change (some drafters
remember earlier texts), and after long prompts; RASD is also compared with each of its two sources alone: DySpec's
tree of the same draft model, and the datastore. Each of the three may draft ``NODES`` nodes in a step; RASD spends half
of them on the draft model and a quarter on each place in which it looks, the text itself and the datastore. Then the time
and memory of a lookup by the length of the text.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from engine.bench.bench_figures import geometric_mean
from engine.bench.command import check_writable
from engine.bench.datastore_alone import DatastoreAlone
from engine.bench.lookup_cost import Lookup, lookup_costs
from engine.core.drafter import Drafter
from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines

KEYS = ("prompt_lookup", "suffix", "token_recycling", "aded", "dyspec", "datastore", "rasd", "gad")
LONG = ("prompt_lookup", "suffix", "chain", "rapid")
"""The drafters for long prompts; ``chain`` is the draft model of ``rapid``, given the whole prompt."""
AGAINST = (("suffix", "prompt_lookup"), ("rasd", "dyspec"), ("rasd", "datastore"), ("rapid", "chain"))  # fmt: skip
SOURCES = ("dyspec", "datastore")  # of rasd
NODES = 16
OPTIONS = {
    "rasd": {"budget": NODES // 2, "retrieved": NODES // 4},
    "dyspec": {"budget": NODES},
    "datastore": {"retrieved": NODES},
}
"""Drafter -> options with which it takes part, where they are not the usual ones."""
AGAIN = "repeated"  # requests of all workloads, slightly changed; itself no workload
REPEATED = 20  # requests
BEFORE = 4  # other requests before the one that is asked, in a long prompt
LENGTHS = (1_000, 10_000, 100_000)  # tokens of the text that is searched
TOKENS = 96
OTHER_WORD = "garden"


@dataclass(frozen=True)
class Speed:
    """One drafter on one workload: tokens per second and tokens per pass over all prompts. same: the share of its
    texts that equal the first drafter's."""

    workload: str
    drafter: str
    tokens_per_second: float
    tokens_per_pass: float
    same: float


def retrieval(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one round and an eighth of the prompts; else three rounds and half of them."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, needed(paths), "float32", "cpu")
    rounds, share = (1, 8) if quick else (3, 2)
    able = {key for key in (*KEYS, *LONG) if needs_of(key).keys() <= models.parts.keys()}
    keys, long_keys = ([key for key in some if key in able] for some in (KEYS, LONG))
    every = interleaved(workloads)
    again = [(prompt, slightly_changed(prompt)) for prompt in every[: 2 * REPEATED // share]]
    long = [(None, prompt) for prompt in long_prompts(every)[: 2 * REPEATED // share]]
    speeds = []
    with torch_threads(models.target.torch_threads):
        for name, cards in workloads.items():
            asked = [(None, card["prompt"]) for card in cards[::share]]
            speeds += compare(models, name, asked, rounds, keys)
        speeds += compare(models, AGAIN, again, rounds, keys)
        speeds += compare(models, "long", long, rounds, long_keys)
    lengths = LENGTHS[:2] if quick else LENGTHS
    lookups = [cost for length in lengths for cost in lookup_costs(models, length, every)]
    print(table(speeds, lookups))
    if out is not None:
        data = {"speeds": [asdict(s) for s in speeds], "lookups": [asdict(c) for c in lookups]}
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def contestant(key: str) -> type[Drafter]:
    """A drafter by its key; "datastore" is the retrieval of ``rasd`` without its draft model."""
    return DatastoreAlone if key == DatastoreAlone.key else drafter_class(key)


def needs_of(key: str) -> Mapping[str, str]:
    return contestant(key).needs


def needed(paths: ModelPaths) -> dict[str, str]:
    """Role -> kind of all parts that exist and that a contestant uses."""
    needs = {role: kind for key in (*KEYS, *LONG) for role, kind in needs_of(key).items()}
    return {role: kind for role, kind in needs.items() if role in paths.parts}


def interleaved(workloads: Mapping[str, Sequence[dict]]) -> list[str]:
    """Prompts of all workloads in turn."""
    in_turn = itertools.zip_longest(*workloads.values())
    return [card["prompt"] for cards in in_turn for card in cards if card]


def slightly_changed(prompt: str) -> str:
    """The same request about something else: its last number plus one, or else its last long word replaced."""
    numbers = list(re.finditer(r"\d+", prompt))
    if numbers:
        last = numbers[-1]
        return prompt[: last.start()] + str(int(last.group()) + 1) + prompt[last.end() :]
    words = list(re.finditer(r"\b[a-z]{4,}\b", prompt))
    if not words:
        return prompt
    return prompt[: words[-1].start()] + OTHER_WORD + prompt[words[-1].end() :]


def long_prompts(prompts: Sequence[str]) -> list[str]:
    """Each prompt after other prompts, the first of which is a slightly changed copy of the prompt."""
    made = []
    for place, prompt in enumerate(prompts):
        others = [prompts[place - back] for back in range(1, min(BEFORE, len(prompts)) + 1)]
        made.append("\n\n".join([slightly_changed(prompt), *others, prompt]))
    return made


def compare(
    models: Models,
    name: str,
    requests: Sequence[tuple[str | None, str]],
    rounds: int,
    keys: Sequence[str],
) -> list[Speed]:
    """requests: (an earlier request, or None; the prompt). For each prompt the median of the rounds counts."""
    seconds: dict[str, list[float]] = {key: [] for key in keys}
    tokens, passes, same = (dict.fromkeys(keys, 0) for _ in range(3))
    memories = {key: Memory() for key in keys}
    for key in keys:
        for before, _ in requests:
            if before is not None:
                write(models, key, before, memories[key])
    for _, prompt in requests:
        taken: dict[str, list[float]] = {key: [] for key in keys}
        texts: dict[str, list[int]] = {}
        for turn in range(rounds):
            for key in keys:
                memory = copy.deepcopy(memories[key])  # or the second round would copy the first
                began = time.perf_counter()
                texts[key], calls = write(models, key, prompt, memory)
                taken[key].append(time.perf_counter() - began)
                if turn == 0:
                    tokens[key] += len(texts[key])
                    passes[key] += calls
        for key in keys:
            seconds[key].append(median(taken[key]) / len(texts[key]))
            same[key] += texts[key] == texts[keys[0]]
    return [
        Speed(
            name,
            key,
            1 / geometric_mean(seconds[key]),
            tokens[key] / passes[key],
            same[key] / len(requests),
        )
        for key in keys
        if requests
    ]


def write(models: Models, key: str, prompt: str, memory: Memory) -> tuple[list[int], int]:
    """The tokens written after the prompt, and the passes of the target that they took."""
    cls = contestant(key)
    drafter = cls.build(resolve(key, cls.options, OPTIONS.get(key, {})), models)
    tokens = models.target.tokenizer(prompt)["input_ids"][TOKENS - models.target.max_context :]
    request = TextRequest(drafter, verifier("greedy"), Sampling(), tokens, TOKENS, memory=memory)
    text, passes = [], 0
    for step in run_loop(models.target, request, recorded=False):
        text += step.output
        passes += step.passes["target"]
    return text, passes


def table(speeds: Sequence[Speed], lookups: Sequence[Lookup]) -> str:
    lines = [f"{'workload':12} {'drafter':16} {'tokens/s':>9} {'a pass':>7} {'same text':>10}"]
    lines += [
        f"{s.workload:12} {s.drafter:16} {s.tokens_per_second:9.1f} {s.tokens_per_pass:7.2f} "
        f"{s.same:10.0%}"
        for s in speeds
    ]
    lines += _compared(speeds)
    lines.append(f"{'text':>12} {'what':20} {'lookup, µs':>11} {'memory, MB':>11}")
    for cost in lookups:
        memory = "" if cost.bytes is None else f"{cost.bytes / 1e6:.2f}"
        lines.append(f"{cost.tokens:12,} {cost.what:20} {cost.microseconds:11.0f} {memory:>11}")
    return "\n".join(lines)


def _compared(speeds: Sequence[Speed]) -> list[str]:
    """The speeds of drafters divided by those of others, by workload, and where rasd beats both its sources."""
    of = {(s.workload, s.drafter): s.tokens_per_second for s in speeds}
    names = dict.fromkeys(s.workload for s in speeds)
    lines = [
        f"{one} against {other}, {name}: {of[name, one] / of[name, other]:.2f}"
        for one, other in AGAINST
        for name in names
        if {(name, one), (name, other)} <= of.keys()
    ]
    asked = [
        n for n in names if n != AGAIN and {(n, key) for key in ("rasd", *SOURCES)} <= of.keys()
    ]
    if asked:
        above = sum(of[n, "rasd"] > max(of[n, key] for key in SOURCES) for n in asked)
        lines.append(
            f"rasd is above both its sources on {above} of {len(asked)} workloads, with {NODES} nodes each"
        )
    return lines
