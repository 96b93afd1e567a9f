"""`python -m engine bench --suite schema`: the steps saved by the tokens that a JSON schema forces.

Every prompt of the template workload is answered greedily: with the schema by one record, without it
by as many tokens. Counts, not times, so one round is enough.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.bench.command import check_writable
from engine.chat.json_schema import JsonSchema
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines

KEYS = ("none", "chain")
TOKENS = 64
SHORT = {"type": "string", "maxLength": 12}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}
FIELDS = {"name": SHORT, "count": NUMBER, "city": SHORT, "active": {"type": "boolean"}}
RECORD = {
    "type": "object",
    "properties": FIELDS,
    "required": [*FIELDS],
    "additionalProperties": False,
}
"""Keys, quotes and brackets are forced: about half of the tokens of a record."""


@dataclass
class Row:
    """One drafter, with or without the schema, over all prompts. forced: kept tokens that the schema
    forced."""

    drafter: str
    schema: bool
    tokens: int = 0
    steps: int = 0
    forced: int = 0

    @property
    def tokens_a_step(self) -> float:
        return self.tokens / self.steps


def schema(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: every sixth prompt."""
    prompts = [card["prompt"] for card in workloads["template"]][:: 6 if quick else 1]
    run_schema(paths, prompts, out)


def run_schema(paths: ModelPaths, prompts: Sequence[str], out: str | None) -> list[Row]:
    """Count on every prompt, print a table, and write JSON where ``out`` says."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, {"draft": "draft"}, "float32", "cpu")
    rows = []
    for key in KEYS:
        free, held = Row(key, False), Row(key, True)
        for prompt in prompts:
            tokens = models.target.tokenizer(prompt)["input_ids"]
            written = _count(models, held, tokens, TOKENS)
            _count(models, free, tokens, written)
        rows += [free, held]
    print(table(rows))
    if out is not None:
        data = [asdict(row) | {"tokens_a_step": row.tokens_a_step} for row in rows]
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return rows


def _count(models: Models, row: Row, prompt: list[int], most: int) -> int:
    """Write one text of at most ``most`` tokens and return its length."""
    cls, target = drafter_class(row.drafter), models.target
    drafter = cls.build(resolve(row.drafter, cls.options, {}), models)
    constraint = None
    if row.schema:
        text, ends = json.dumps(RECORD), target.end_tokens
        constraint = JsonSchema(text, target.tokenizer, target.vocab_size, ends)
    request = TextRequest(
        drafter, verifier("greedy"), Sampling(), prompt, most, constraint=constraint
    )
    before = row.tokens
    for step in run_loop(target, request):
        row.tokens += len(step.output)
        row.steps += 1
        row.forced += min(step.tree.forced, len(step.verdict.accepted))
    return row.tokens - before


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'drafter':8} {'schema':>7} {'tokens':>7} {'forced':>7} {'a step':>7}"]
    for row in rows:
        lines.append(
            f"{row.drafter:8} {'yes' if row.schema else 'no':>7} {row.tokens:7} "
            f"{row.forced / row.tokens:7.0%} {row.tokens_a_step:7.2f}"
        )
    for free, held in zip(rows[::2], rows[1::2], strict=True):
        ratio = held.tokens_a_step / free.tokens_a_step
        lines.append(f"{free.drafter}: {ratio:.2f} times the tokens a step")
    return "\n".join(lines)
