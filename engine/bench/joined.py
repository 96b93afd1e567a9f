"""`python -m engine bench --suite joined`: would it pay to read several visitors' texts in one pass?

2, 4 and 8 texts are written greedily, to their ends. *turns*: one step of each text in turn, in passes
compiled for this CPU, as the page does. *joined*: ``engine.batch.together``, one pass per round over buffers
that lie side by side; such passes are not compiled. *at best*: the gain that compiled passes could reach if
joining texts itself cost nothing, from the cost of one text's pass over as many rows.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

from engine.batch.together import decode_together
from engine.bench.command import check_writable, processor
from engine.bench.verify_cost import verify_costs
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.trace import write_lines

TEXTS = (2, 4, 8)
SETTINGS = (("none", {}), ("chain", {"length": 4, "stop_below": 0.0}))
TOKENS, WARM_UP = 96, 8
Steps = Iterator[tuple[int, object]]
"""(index of the text, its step)."""


@dataclass(frozen=True)
class Row:
    """One drafter with a given number of texts. turns, joined: tokens per second of all texts together.
    equal: texts that both ways wrote alike. at_best: the best possible gain over ``turns``, as a factor,
    from the passes alone."""

    drafter: str
    texts: int
    turns: float
    joined: float
    equal: int
    at_best: float


def joined(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: 2 and 4 texts, once."""
    by_turns = zip(*workloads.values(), strict=False)
    prompts = [card["prompt"] for cards in by_turns for card in cards]
    run_joined(paths, prompts, TEXTS[:2] if quick else TEXTS, 1 if quick else 3, out)


def run_joined(
    paths: ModelPaths, prompts: Sequence[str], texts: Sequence[int], rounds: int, out: str | None
) -> list[Row]:
    """Measure, print a table, and write JSON where ``out`` says. The fastest of several rounds counts."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    beside = side_by_side(paths, models.target)
    read = [models.target.tokenizer(one)["input_ids"] for one in prompts[: max(texts)]]
    rows = []
    for key, options in SETTINGS:
        size = 1 + int(options.get("length", 0))  # rows of one text's pass
        costs = verify_costs(models.target, (size - 1, *(size * count - 1 for count in texts)))
        for count in texts:
            asked = requests(models, key, options, read[:count], WARM_UP)
            for way in (_turns(models.target, asked()), decode_together(beside, asked())):
                timed(way, count)
            asked = requests(models, key, options, read[:count], TOKENS)
            found = [
                (timed(_turns(models.target, asked()), count),
                 timed(decode_together(beside, asked()), count))
                for _ in range(rounds)
            ]  # fmt: skip
            best = [max(speed for speed, _ in way) for way in zip(*found, strict=True)]
            (_, alone), (_, together) = found[0]
            equal = sum(a == b for a, b in zip(alone, together, strict=True))
            at_best = count * costs[size - 1] / costs[size * count - 1]
            rows.append(Row(key, count, *best, equal, at_best))
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


def side_by_side(paths: ModelPaths, target: LanguageModel) -> LanguageModel:
    """The same target, able to read several texts in one pass."""
    transformers.utils.logging.disable_progress_bar()
    module = AutoModelForCausalLM.from_pretrained(paths.target, dtype=torch.float32).eval()
    return language_model(module, target.tokenizer, target.name, static=True)


def requests(
    models: Models, key: str, options: dict, prompts: Sequence[list[int]], tokens: int
) -> Callable[[], list[TextRequest]]:
    """A function that makes one request per prompt, each with its own drafter."""
    cls = drafter_class(key)
    settled = resolve(key, cls.options, options)
    return lambda: [
        TextRequest(cls.build(settled, models), verifier("greedy"), Sampling(), prompt, tokens)
        for prompt in prompts
    ]


def _turns(target: LanguageModel, requests: Sequence[TextRequest]) -> Steps:
    """One step of each text in turn, as on the page."""
    open_ones = {index: run_loop(target, one, False) for index, one in enumerate(requests)}
    while open_ones:
        for index, steps in list(open_ones.items()):
            step = next(steps, None)
            if step is None:
                del open_ones[index]
            else:
                yield index, step


def timed(steps: Steps, count: int) -> tuple[float, list[list[int]]]:
    """Tokens per second, and the texts."""
    texts: list[list[int]] = [[] for _ in range(count)]
    began = time.perf_counter()
    for index, step in steps:
        texts[index] += step.output
    return sum(map(len, texts)) / (time.perf_counter() - began), texts


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'drafter':8} {'texts':>5} {'turns':>8} {'joined':>8} {'ratio':>6} {'at best':>8}"]
    for row in rows:
        lines.append(
            f"{row.drafter:8} {row.texts:5} {row.turns:8.1f} {row.joined:8.1f} "
            f"{row.joined / row.turns:6.2f} {row.at_best:8.2f}"
        )
    alike, all_texts = sum(row.equal for row in rows), sum(row.texts for row in rows)
    lines.append(f"tokens a second of all texts; {alike} of {all_texts} texts written alike")
    return "\n".join(lines)
