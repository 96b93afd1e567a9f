"""`python -m engine bench --suite vocabtrim`: bytes saved and accepted tokens lost, by the kept share of the draft's
head.

Greedy texts on all workloads with drafts of one length: all sizes of the cut head write the same texts and differ only
in steps and time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.bench.command import check_writable
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods.vocabtrim.drafter import VocabTrimDrafter, kept_tokens
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines

SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
TOKENS, PROMPTS, LENGTH = 96, 3, 4


@dataclass(frozen=True)
class Row:
    """share: the kept share of the draft's head. missing: the share of the texts' tokens that the head lacks.
    tokens_per_step: the final token included. texts: how many are equal to those of the whole head."""

    share: float
    tokens: int
    kilobytes: float
    missing: float
    tokens_per_step: float
    draft_milliseconds: float
    tokens_per_second: float
    texts: int


def vocabtrim(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one prompt of each workload, three sizes."""
    count = 1 if quick else PROMPTS
    prompts = [card["prompt"] for cards in workloads.values() for card in cards[:count]]
    run_vocabtrim(paths, prompts, SHARES[:5:2] if quick else SHARES, out)


def run_vocabtrim(
    paths: ModelPaths, prompts: Sequence[str], shares: Sequence[float], out: str | None
) -> list[Row]:
    """Measure, print a table, and write JSON where ``out`` says. The others are compared with the first share."""
    if out is not None:
        check_writable(Path(out))
    models = load_models(paths, VocabTrimDrafter.needs, "float32", "cpu")
    read = [models.target.tokenizer(one)["input_ids"] for one in prompts]
    rows, whole = [], None
    for share in shares:
        written(models, share, read[0])  # compiles, and warms up
        texts, row = measured(models, share, read)
        whole = whole or texts
        row["texts"] = sum(one == other for one, other in zip(texts, whole, strict=True))
        rows.append(Row(**row))
    print(table(rows, len(read)))
    if out is not None:
        write_lines(out, [json.dumps([asdict(row) for row in rows], indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return rows


def measured(models: Models, share: float, prompts: Sequence[list[int]]) -> tuple[list, dict]:
    """The texts, and all fields of a row except ``texts``."""
    draft = models.part("draft")
    kept = kept_tokens(models.part("vocabulary"), share, draft.vocab_size)
    known, texts, steps, drafting = set(kept.tolist()), [], 0, 0.0
    began = time.perf_counter()
    for prompt in prompts:
        found = written(models, share, prompt)
        texts.append([token for step in found for token in step.output])
        steps += len(found)
        drafting += sum(step.milliseconds["draft"] for step in found)
    seconds = time.perf_counter() - began
    tokens = [token for text in texts for token in text]
    width = draft.hidden_size * draft.dtype.itemsize
    return texts, {
        "share": share,
        "tokens": len(kept),
        "kilobytes": len(kept) * width / 1000,
        "missing": sum(token not in known for token in tokens) / len(tokens),
        "tokens_per_step": len(tokens) / steps,
        "draft_milliseconds": drafting / steps,
        "tokens_per_second": len(tokens) / seconds,
    }


def written(models: Models, share: float, prompt: list[int]) -> list:
    """The steps of a text."""
    options = {"length": LENGTH, "kept": share, "stop_below": 0.0}
    settled = resolve("vocabtrim", VocabTrimDrafter.options, options)
    drafter = VocabTrimDrafter.build(settled, models)
    request = TextRequest(drafter, verifier("greedy"), Sampling(), prompt, TOKENS)
    with torch_threads(models.target.torch_threads):
        return list(run_loop(models.target, request, recorded=False))


def table(rows: Sequence[Row], count: int) -> str:
    """count: the number of texts."""
    whole = rows[0]
    heads = f"{'kept':>6} {'tokens':>7} {'head kB':>8} {'saved':>6} {'missing':>8} "
    lines = [heads + f"{'tokens/step':>11} {'lost':>6} {'draft ms':>8} {'tokens/s':>8}"]
    for row in rows:
        saved = 1 - row.kilobytes / whole.kilobytes
        lost = 1 - row.tokens_per_step / whole.tokens_per_step
        lines.append(
            f"{row.share:6.1%} {row.tokens:7,} {row.kilobytes:8,.0f} {saved:6.0%} {row.missing:8.2%} "
            f"{row.tokens_per_step:11.2f} {lost:6.1%} {row.draft_milliseconds:8.2f} "
            f"{row.tokens_per_second:8.1f}"
        )
    alike = sum(row.texts for row in rows)
    lines.append(
        f"missing: tokens of the texts that the head lacks; {alike} of {count * len(rows)} texts written alike"
    )
    return "\n".join(lines)
