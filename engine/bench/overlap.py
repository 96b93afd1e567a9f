"""`python -m engine bench --suite overlap`: does it pay to draft while the target verifies?

PEARL against the chain drafter with the same draft model, in turns on the same prompts, greedy. Both
have the same two cores: the chain computes with two threads, PEARL with one thread in each of two
lanes.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from engine.bench.command import check_writable, processor
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.step import Span, Step
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.sizes.draft_size import settle_size
from engine.trace import write_lines

LENGTHS = (2, 3, 4, 6, 8)  # drafted during one pass
TOKENS, WARM_UP = 128, 12
WORTH = 1 / 3  # the share of a chain's step that drafting must take for the comparison to say much


@dataclass
class Row:
    """One setting, all prompts and rounds together.

    draft_share: the share of the steps' time in which only the draft was at work. both: the share of
    the time covered by spans in which both lanes were at work; None without spans.
    """

    name: str
    tokens: int = 0
    steps: int = 0
    milliseconds: float = 0.0
    alone: float = 0.0
    covered: float = 0.0
    together: float = 0.0

    def add(self, step: Step) -> None:
        self.tokens += len(step.output)
        self.steps += 1
        self.milliseconds += sum(step.milliseconds.values())
        self.alone += step.milliseconds["draft"]
        if step.spans:
            self.covered += max(one.end for one in step.spans) - min(s.start for s in step.spans)
            self.together += together(step.spans)

    @property
    def tokens_per_second(self) -> float:
        return 1000 * self.tokens / self.milliseconds

    @property
    def draft_share(self) -> float:
        return self.alone / self.milliseconds

    @property
    def both(self) -> float | None:
        return self.together / self.covered if self.covered else None


def together(spans: Sequence[Span]) -> float:
    """Milliseconds in which the target's lane and another one were at work."""
    own = [span for span in spans if span.lane == "target"]
    others = [span for span in spans if span.lane != "target"]
    return sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in own for b in others)


def overlap(
    paths: ModelPaths,
    workloads: Mapping[str, Sequence[dict]],
    quick: bool,
    out: str | None,
) -> None:
    """The suite: the first prompt of every workload."""
    first = [cards[0]["prompt"] for cards in workloads.values()]
    run_overlap(paths, first, 1 if quick else 3, out)


def run_overlap(
    paths: ModelPaths, prompts: Sequence[str], rounds: int, out: str | None
) -> list[Row]:
    """Measure every setting on every prompt, print a table, and write JSON where ``out`` says."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    settings = [("chain", settled(models))] + [("pearl", {"length": n}) for n in LENGTHS]
    rows = [Row(f"{key} {options['length']}") for key, options in settings]
    texts = [models.target.tokenizer(prompt)["input_ids"] for prompt in prompts]
    for turn in range(rounds + 1):  # the first one warms up
        for text in texts[:1] if turn == 0 else texts:
            for row, (key, options) in zip(rows, settings, strict=True):
                for step in steps(models, key, options, text, TOKENS if turn else WARM_UP):
                    if turn:
                        row.add(step)
    print(table(rows))
    if out is not None:
        write_lines(out, [json.dumps(as_json(rows, models), allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return rows


def settled(models: Models) -> dict:
    """The chain's options with the length that pays on this machine."""
    cls = drafter_class("chain")
    return settle_size(cls, resolve("chain", cls.options, {}), models, Sampling())


def steps(models: Models, key: str, options: dict, text: list[int], count: int):
    cls = drafter_class(key)
    drafter = cls.build(resolve(key, cls.options, options), models)
    return run_loop(
        models.target, TextRequest(drafter, verifier("greedy"), Sampling(), text, count)
    )


def table(rows: Sequence[Row]) -> str:
    chain, *others = rows
    lines = [
        f"{'setting':10} {'tokens/s':>9} {'a step':>7} {'draft alone':>12} {'both at work':>13}"
    ]
    for row in rows:
        both = "" if row.both is None else f"{row.both:.0%}"
        lines.append(
            f"{row.name:10} {row.tokens_per_second:9.1f} {row.tokens / row.steps:7.2f} "
            f"{row.draft_share:12.0%} {both:>13}"
        )
    best = max(others, key=lambda row: row.tokens_per_second)
    ratio = best.tokens_per_second / chain.tokens_per_second
    lines.append(f"best pearl against chain: {ratio:.2f}, with {torch.get_num_threads()} threads")
    if chain.draft_share < WORTH:
        lines.append(
            f"The chain's draft takes {chain.draft_share:.0%} of a step; there is little to overlap "
            f"below {WORTH:.0%}."
        )
    return "\n".join(lines)


def as_json(rows: Sequence[Row], models: Models) -> dict:
    derived = ("tokens_per_second", "draft_share", "both")
    return {
        "target": models.target.name,
        "parameters": models.target.parameters,
        "draft_parameters": models.part("draft").parameters,
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "torch": torch.__version__,
        "rows": [asdict(row) | {name: getattr(row, name) for name in derived} for row in rows],
    }
