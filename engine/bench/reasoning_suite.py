"""`python -m engine bench --suite reasoning`: worked sums by the large model, the small one, and both together.

Held-out sums of the arithmetic generator, solved greedily: the share of right results, and the engine time. The
contestants take turns, one sum each.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engine.bench.command import check_writable
from engine.core.options import Value, resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines
from engine.training.answers import Pair, same_result
from engine.training.generators import arithmetic, is_held_out
from engine.training.generators.words import Vocabulary

KINDS = {"steps": arithmetic.in_steps, "word problems": arithmetic.story}
SUMS, SPARE = 40, 24  # sums of each kind; tokens beyond the right answer's length


@dataclass(frozen=True)
class Contestant:
    """One way of writing. small: the small model is the target."""

    name: str
    drafter: str = "none"
    small: bool = False
    options: Mapping[str, Value] = field(default_factory=dict)


CONTESTANTS = (
    Contestant("large alone"),
    Contestant("small alone", small=True),
    Contestant("specreason", "specreason"),
    Contestant("speculative_thinking", "speculative_thinking"),
)


@dataclass
class Row:
    """right: sums whose result is right. seconds: engine time, prompts included. small_tokens: how many of the tokens
    the small model wrote."""

    name: str
    sums: int = 0
    right: int = 0
    tokens: int = 0
    small_tokens: int = 0
    target_passes: int = 0
    seconds: float = 0.0


def reasoning(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: a fifth of the sums."""
    run_reasoning(paths, held_out_sums(SUMS // 5 if quick else SUMS), out)


def held_out_sums(count: int) -> list[Pair]:
    """``count`` sums of each kind that no training saw, as (prompt, answer)."""
    found = []
    for name, make in KINDS.items():
        rng = random.Random(f"reasoning/{name}")
        drawn = (make(rng, Vocabulary()) for _ in itertools.count())
        found += itertools.islice((pair for pair in drawn if is_held_out(pair[0])), count)
    return found


def run_reasoning(paths: ModelPaths, sums: Sequence[Pair], out: str | None) -> list[Row]:
    """Measure, print a table, and write JSON where ``out`` says."""
    if out is not None:
        check_writable(Path(out))
    both = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    rows = {one.name: Row(one.name) for one in CONTESTANTS}
    for one in CONTESTANTS:
        measure(Row(""), one, both, sums[0])  # compiles, and warms up
    for pair in sums:
        for one in CONTESTANTS:
            measure(rows[one.name], one, both, pair)
    found = list(rows.values())
    print(table(found))
    if out is not None:
        write_lines(out, [json.dumps([asdict(row) for row in found], indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return found


def measure(row: Row, one: Contestant, both: Models, pair: Pair) -> None:
    """Add one sum to the row."""
    prompt, answer = pair
    models = Models(both.part("draft"), both.parts) if one.small else both
    cls, encode = drafter_class(one.drafter), both.target.tokenizer
    made = cls.build(resolve(cls.key, cls.options, one.options), models)
    rule = verifier(cls.default_greedy_verifier)
    count = len(encode(answer)["input_ids"]) + SPARE
    request = TextRequest(made, rule, Sampling(), encode(prompt)["input_ids"], count)
    with torch_threads(models.target.torch_threads):
        steps = list(run_loop(models.target, request, recorded=False))
    tokens = [token for step in steps for token in step.output]
    said = encode.decode(tokens, skip_special_tokens=True)
    row.sums += 1
    row.right += same_result(prompt, answer, said)
    row.tokens += len(tokens)
    drafted = sum(len(step.verdict.accepted) for step in steps)
    row.small_tokens += len(tokens) if one.small else drafted
    row.target_passes += 0 if one.small else sum(step.passes.get("target", 0) for step in steps)
    spent = sum(sum(step.milliseconds.values()) + step.prefill_milliseconds for step in steps)
    row.seconds += spent / 1000


def table(rows: Sequence[Row]) -> str:
    heads = ("", "right", "share", "seconds", "a sum", "passes", "by the small")
    lines = ["{:22}{:>8}{:>8}{:>9}{:>9}{:>8}{:>14}".format(*heads)]
    for row in rows:
        lines.append(
            f"{row.name:22}{row.right:8d}{row.right / row.sums:8.0%}{row.seconds:9.2f}"
            f"{1000 * row.seconds / row.sums:6.0f} ms{row.target_passes:8d}"
            f"{row.small_tokens / max(1, row.tokens):14.0%}"
        )
    lines.append(f"{rows[0].sums} held-out sums, greedy; passes: of the large model")
    return "\n".join(lines)
