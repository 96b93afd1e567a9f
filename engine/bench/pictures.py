"""`python -m engine bench --suite pictures`: passes of the image target, and the cost of acceptance by clusters.

One picture of each digit, drawn by every contestant with the same seeds. Passes are counted, so the machine does not
matter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.bench.command import check_writable
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, load_models
from engine.rules import verifier
from engine.trace import write_lines

DIGITS = "0123456789"
WINDOW = {"window": 16, "fill": "repeat"}
CONTESTANTS: tuple[tuple[str, dict, str, dict], ...] = (
    ("none", {}, "rejection", {}),
    ("jacobi", {"window": 16}, "rejection", {}),
    ("sjd", {**WINDOW, "window": 8}, "rejection", {}),
    ("sjd", WINDOW, "rejection", {}),
    ("sjd", WINDOW, "gsd", {"group": 4}),
    ("sjd", WINDOW, "gsd", {"group": 8}),
    ("sjd", WINDOW, "gsd", {"group": 16}),
)
"""Drafter and its options, rule and its options."""


@dataclass(frozen=True)
class Row:
    """tokens, passes: totals over all pictures. nats: mean -log p of the tokens under the target; where it is above
    plain decoding's, the pictures are less likely. price: for a lossy rule, the mean probability that goes to other
    tokens in a judged place; None for an exact rule."""

    who: str
    tokens: int
    passes: int
    nats: float
    price: float | None

    @property
    def gain(self) -> float:
        return self.tokens / self.passes


def pictures(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: three digits."""
    if out is not None:
        check_writable(Path(out))
    target = load_models(paths, {}).target
    if target.picture is None:
        raise UserError(f"{target.name} writes no pictures; this suite needs a model that does.")
    rows = [measured(target, one, DIGITS[:3] if quick else DIGITS) for one in CONTESTANTS]
    print(table(rows))
    if out is not None:
        write_lines(out, [json.dumps([asdict(row) for row in rows], indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)


def measured(target: LanguageModel, contestant: tuple[str, dict, str, dict], digits: str) -> Row:
    key, options, rule, rule_options = contestant
    steps = [
        step
        for digit in digits
        for step in drawn(target, key, options, verifier(rule, rule_options), digit)
    ]
    tokens = sum(len(step.output) for step in steps)
    nats = -sum(sum(logs(step)) for step in steps) / tokens
    prices = [row[4] for step in steps for one in step.verdict.exhibits for row in one.make().rows]
    settings = ", ".join(f"{name} {value}" for name, value in (options | rule_options).items())
    who = (
        f"{key}{f' / {rule}' if rule != 'rejection' else ''}{f' ({settings})' if settings else ''}"
    )
    return Row(who, tokens, len(steps), nats, sum(prices) / len(prices) if prices else None)


def drawn(target: LanguageModel, key: str, options: dict, rule, digit: str) -> list[Step]:
    cls = drafter(key)
    made = cls.build(resolve(key, cls.options, options), _Only(target))
    prompt = target.tokenizer(digit)["input_ids"]
    sampling = Sampling(1.0, seed=int(digit))
    return list(run_loop(target, TextRequest(made, rule, sampling, prompt, target.picture.places)))


@dataclass(frozen=True)
class _Only:
    """The models of a run without parts."""

    target: LanguageModel


def logs(step: Step) -> list[float]:
    """log p of the tokens that the step wrote, each given those before it."""
    places = [0] + [node + 1 for node in step.verdict.accepted]
    rows = step.logits[places].float().log_softmax(-1)
    return [float(row[token]) for row, token in zip(rows, step.output, strict=False)]


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'':<44} {'tokens a pass':>13} {'passes':>7} {'nats a token':>13} {'price':>7}"]
    for row in rows:
        price = "exact" if row.price is None else f"{row.price:.3f}"
        lines.append(
            f"{row.who:<44} {row.gain:>13.2f} {row.passes:>7} {row.nats:>13.3f} {price:>7}"
        )
    lines.append(
        "Price: the share of the probability that goes to other tokens than the target's in a judged place (total variation)."
    )
    return "\n".join(lines)
