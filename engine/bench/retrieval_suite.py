"""`python -m engine bench --suite retrieval`: compares drafters that look tokens up. They decode greedily, in turns.

The suite measures speeds on the workloads as they are, on requests that repeat earlier requests with a small change
(some drafters remember earlier texts), and after long prompts. The methods' cards state which drafters are compared,
and with how many nodes. A drafter that joins several sources of drafts is also compared with each of its sources alone,
with the same number of nodes. Then the suite measures the time and memory of a lookup, by the length of the text.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from engine.bench.bench_figures import Row, rows
from engine.bench.contestants import Ours
from engine.bench.goals import Aim, aims
from engine.bench.lookup_cost import lookup_costs
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, Prompt, Suite, alike
from engine.core.drafter import Drafter
from engine.core.memory import Memory
from engine.core.threads import torch_threads
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models

FULL, QUICK = Plan(prompts=24, rounds=3, tokens=96), Plan(prompts=6, rounds=1, tokens=96)
REQUESTS, QUICK_REQUESTS = 20, 5  # number of repeated requests, and of long prompts
AGAIN = "repeated"  # requests of all workloads, slightly changed; itself no workload
LONG = "long"
BEFORE = 4  # in a long prompt, other requests before the last one
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 10_000)
"""Lengths of the text that is searched, in tokens."""
OTHER_WORD = "garden"

Classes = Mapping[str, type[Drafter]]


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. In the rows of speeds, ``same`` is the share of a drafter's texts that equal
    those of the first drafter."""
    figures, plan = aims("retrieval"), QUICK if quick else FULL
    classes = {
        key: cls
        for key, cls in candidates(figures).items()
        if cls.needs.keys() <= paths.parts.keys()
    }
    needs = {role: kind for cls in classes.values() for role, kind in cls.needs.items()}
    models, every = load_models(paths, needs, "float32", "cpu"), interleaved(workloads)
    repeats = every[: QUICK_REQUESTS if quick else REQUESTS]
    texts = {
        name: [card["prompt"] for card in cards[:: len(cards) // plan.prompts or 1]][: plan.prompts]
        for name, cards in workloads.items()
    }
    texts[AGAIN] = [slightly_changed(text) for text in repeats]
    texts[LONG] = long_prompts(every)[: len(repeats)]
    table_rows: list[Row] = []
    speeds, lookups = [], []
    for name, requests in texts.items():
        ours = contestants(models, classes, figures, name, repeats if name == AGAIN else ())
        prompts = [prompt_of(models, name, text) for text in requests]
        results = Suite(ours, prompts, plan).run()
        same = alike(results, ours[0].name)
        workload_rows = rows(results, {contestant.name: contestant.group for contestant in ours})
        table_rows += workload_rows
        speeds += [
            {
                "workload": row.workload,
                "drafter": row.contestant,
                "tokens_per_second": row.tokens_per_second,
                "tokens_per_pass": row.mean_accepted,
                "same": same[row.contestant] / len(prompts),
            }
            for row in workload_rows
        ]
    with torch_threads(models.target.torch_threads):
        for length in QUICK_LENGTHS if quick else LENGTHS:
            costs = lookup_costs(models, classes, long_readers(figures), length, every)
            lookups += map(asdict, costs)
    text = "\n".join(
        [
            table(speeds, "workload drafter tokens_per_second:.1f tokens_per_pass:.2f same:.0%"),
            *beside(figures, table_rows),
            *above_sources(classes, table_rows),
            table(lookups, "tokens:, what microseconds:.0f bytes:,"),
        ]
    )
    return Report(text, {"speeds": speeds, "lookups": lookups})


def candidates(figures: Sequence[Aim]) -> Classes:
    """The drafters that look tokens up, the drafters that they are compared with, and those whose drafts they join
    (``Drafter.sources``), by key."""
    all_drafters = drafters()
    keys = [key for key, cls in all_drafters.items() if cls.family == "retrieval"]
    entrants = [entrant.key for figure in figures for entrant in figure.entrants]
    classes = {key: all_drafters[key] for key in (*keys, *entrants) if key in all_drafters}
    sources = {source.key: source for cls in classes.values() for source in cls.sources}
    return {**sources, **classes}


def long_readers(figures: Sequence[Aim]) -> set[str]:
    """The names of the drafters that are made only for long prompts, and of those that they are compared with."""
    return {
        entrant.name
        for figure in figures
        if figure.workloads == (LONG,)
        for entrant in figure.entrants
    }


def contestants(
    models: Models, classes: Classes, figures: Sequence[Aim], workload: str, earlier: Sequence[str]
) -> list[Ours]:
    """The contestants for a workload. On long prompts, these are the drafters that are made for long prompts, and those
    that need no trained module. On other workloads, these are all drafters that are not made only for long prompts.

    earlier: requests that each contestant answers before it is measured. The contestant begins every measured text with
    the memory that it had after these requests. If it also kept what it wrote since, it would only copy its own texts
    in the second round.
    """
    options: dict[str, Mapping] = {}
    for entrant in (entrant for figure in figures for entrant in figure.entrants):
        options[entrant.key] = entrant.options or options.get(entrant.key, {})
    long_only, lineup = long_readers(figures), []
    for key, cls in classes.items():
        if key in long_only or not cls.needs if workload == LONG else key not in long_only:
            memory = Memory()
            contestant = Ours(
                cls, models, key, options.get(key, {}), memory=lambda memory=memory: memory
            )
            for text in earlier:
                contestant.write(prompt_of(models, workload, text).tokens, FULL.tokens)
            contestant.memory = lambda memory=memory: copy.deepcopy(memory)
            lineup.append(contestant)
    return lineup


def prompt_of(models: Models, workload: str, text: str) -> Prompt:
    """The text as a prompt. It is cut at its beginning if it leaves too little room for the tokens that are written."""
    tokens = models.target.tokenizer(text)["input_ids"]
    return Prompt(workload, text, tokens[FULL.tokens - models.target.max_context :])


def interleaved(workloads: Cards) -> list[str]:
    """The prompts of all workloads, one of each workload in turn, until all prompts are used."""
    in_turn = itertools.zip_longest(*workloads.values())
    return [card["prompt"] for cards in in_turn for card in cards if card]


def slightly_changed(prompt: str) -> str:
    """The request with a small change: its last number plus one or, without a number, its last word of four or more
    letters replaced by OTHER_WORD."""
    numbers = list(re.finditer(r"\d+", prompt))
    if numbers:
        last = numbers[-1]
        return prompt[: last.start()] + str(int(last.group()) + 1) + prompt[last.end() :]
    words = list(re.finditer(r"\b[a-z]{4,}\b", prompt))
    if not words:
        return prompt
    return prompt[: words[-1].start()] + OTHER_WORD + prompt[words[-1].end() :]


def long_prompts(prompts: Sequence[str]) -> list[str]:
    """Long prompts: each prompt after a slightly changed copy of itself and up to BEFORE other prompts."""
    texts = []
    for place, prompt in enumerate(prompts):
        earlier = [prompts[place - back] for back in range(1, min(BEFORE, len(prompts)) + 1)]
        texts.append("\n\n".join([slightly_changed(prompt), *earlier, prompt]))
    return texts


def beside(figures: Sequence[Aim], table_rows: Sequence[Row]) -> list[str]:
    """Lines with the speed of each compared drafter divided by that of its rival, by workload."""
    workloads = dict.fromkeys(row.workload for row in table_rows)
    goals = [
        replace(figure, workloads=(name,)).goal(table_rows)
        for figure in figures
        for name in workloads
    ]
    return [f"{goal.what}: {goal.value:.2f}" for goal in goals if goal.value is not None]


def above_sources(classes: Classes, table_rows: Sequence[Row]) -> list[str]:
    """Lines for drafters that join the drafts of other drafters: the number of workloads on which such a drafter is
    faster than each of the others alone."""
    speed = {(row.workload, row.contestant): row.tokens_per_second for row in table_rows}
    lines = []
    for key, cls in classes.items():
        sources = [source.key for source in cls.sources]
        above = [
            speed[name, key] > max(speed[name, source] for source in sources)
            for name in dict.fromkeys(row.workload for row in table_rows)
            if sources
            and name not in (AGAIN, LONG)
            and {(name, source) for source in (key, *sources)} <= speed.keys()
        ]
        if above:
            lines.append(
                f"{key} is above all its sources on {sum(above)} of {len(above)} workloads, with equally many nodes each"
            )
    return lines
