"""The recipe `scylla`: trains ten draft models of several sizes, training lengths and batch sizes, and fits a law that
predicts their acceptance.

Nine draft models form a square: each of three sizes with each of three training lengths. Three batch sizes are spread
over the square such that each occurs once with every size and once with every length. The law is fitted to these nine.
The tenth draft model is larger and trained longer. The law's prediction of its acceptance is compared with the
measured acceptance. All draft models learn from the text that the target wrote, without its laws. Acceptance is the
chance that the target accepts a token drawn from the draft model at temperature 1.

Yan et al., Scaling Laws for Speculative Decoding (2025) find acceptance log-linear in the draft model's size and in
its number of training tokens: acceptance = a + sum over factors f of b_f log10(f), fitted by least squares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaForCausalLM

from engine.parts.digest import FIELD, digest_of
from engine.training.common import say
from engine.training.distill import MixedWindows
from engine.training.loop import Budget, fit
from engine.training.new_models import draft_config, parameter_count
from engine.training.student import Lesson, taught
from engine.training.students.draft_students import KEPT, distances
from engine.training.teacher import Teacher

SHAPES = (
    (48, 1),
    (80, 2),
    (128, 3),
    (192, 4),
)  # (width, layers) of the draft models; the last is for the tenth
LENGTHS = (1 / 8, 1 / 4, 1 / 2, 1)  # training lengths, as shares of the tenth draft model's tokens
ROWS = (2, 4, 8)  # windows per step
TOKENS = 1_600_000
HEADS = 2
FACTORS = ("parameters", "tokens", "batch")
"""The factors in the law of acceptance: the draft model's number of parameters, the number of its training tokens, and
the tokens per step of its training."""


@dataclass(frozen=True)
class Law:
    """A fitted law of acceptance. slopes: factor -> the change of acceptance if the factor grows tenfold. r2: R² on
    the points to which the law was fitted."""

    intercept: float
    slopes: Mapping[str, float]
    r2: float

    def at(self, point: Mapping[str, float]) -> float:
        """The acceptance that the law predicts for a draft model. point: the draft model's factors, by name."""
        return self.intercept + sum(
            slope * math.log10(point[name]) for name, slope in self.slopes.items()
        )

    def told(self) -> str:
        terms = " ".join(f"{slope:+.4f} log10({name})" for name, slope in self.slopes.items())
        return f"acceptance = {self.intercept:.4f} {terms}, R² = {self.r2:.3f}"


def fitted(points: Sequence[Mapping[str, float]]) -> Law:
    """The law that fits these points best. points: for each draft model, all ``FACTORS`` and its "acceptance", by
    name. Raises ValueError if there are fewer points than unknowns, or if the factors do not vary independently."""
    rows = np.array([[1.0, *(math.log10(point[name]) for name in FACTORS)] for point in points])
    truth = np.array([point["acceptance"] for point in points])
    if len(rows) < rows.shape[1] or np.linalg.matrix_rank(rows) < rows.shape[1]:
        raise ValueError("these points do not determine a law")
    coefficients, *_ = np.linalg.lstsq(rows, truth, rcond=None)
    missed = float(((truth - rows @ coefficients) ** 2).sum())
    spread = float(((truth - truth.mean()) ** 2).sum())
    r2 = 1 - missed / spread if spread else 1.0
    slopes = dict(zip(FACTORS, map(float, coefficients[1:]), strict=True))
    return Law(float(coefficients[0]), slopes, r2)


def plan(tokens: int) -> list[tuple[tuple[int, int], int, int]]:
    """For each draft model: (width, layers), number of training tokens, windows per step. The last draft model is the
    one to which the law is not fitted. tokens: the number of its training tokens."""
    square = [
        (SHAPES[size], round(LENGTHS[length] * tokens), ROWS[(size + length) % 3])
        for size in range(3)
        for length in range(3)
    ]
    return [*square, (SHAPES[-1], tokens, ROWS[1])]


def scylla(args) -> None:
    teacher = Teacher.of(args)
    text = teacher.windows(args.length, args.seed + 5, (1, 0))
    layer = teacher.module.config.get_text_config(decoder=True).num_hidden_layers
    held_out = [
        taught(
            teacher.module,
            (layer,),
            torch.tensor([tokens]),
            (torch.arange(len(tokens)) >= start)[None],
        )
        for start, tokens in teacher.probes()
    ]
    drafts = plan(args.tokens or TOKENS)
    total = sum(tokens for _, tokens, _ in drafts)
    say(f"{len(drafts)} drafts, {total:,} tokens in all; the last is held out")
    say(f"{'parameters':>11} {'tokens':>10} {'batch':>6} {'acceptance':>10}")
    log = teacher.work / "scylla.json"
    about = {
        "target": digest_of(teacher.folder),
        "tokens": args.tokens,
        "window": args.length,
        "seed": args.seed,
    }
    points = _points_of(log, about)
    for number, (shape, tokens, rows) in enumerate(drafts):
        if number == len(points):
            path = teacher.work / f"scylla-{number}.pt"
            points.append(_point(teacher, text, held_out, shape, tokens, rows, path, args.seed))
            log.write_text(json.dumps({"about": about, "points": points}, indent=1))
            path.unlink()
        say(_row(points[number]))
    verdict = judged(points)
    for line in verdict["told"]:
        say(line)
    folder = teacher.parts / (args.name or "scylla")
    folder.mkdir(parents=True, exist_ok=True)
    content = {FIELD: digest_of(teacher.folder), **verdict}
    (folder / "config.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    say(f"written to {folder}")


def judged(points: list[dict]) -> dict:
    """The law fitted to all points but the last, its prediction for the last point, and lines that report both.
    points: as for ``fitted``."""
    *fitted_points, last = points
    law = fitted(fitted_points)
    expected = law.at(last)
    error = expected - last["acceptance"]
    return {
        "points": fitted_points,
        "held_out": last,
        "law": {"intercept": law.intercept, "slopes": law.slopes, "r2": law.r2},
        "predicted": expected,
        "told": [
            law.told(),
            f"held out: predicted {expected:.4f}, measured {last['acceptance']:.4f}, error {error:+.4f}",
        ],
    }


def _points_of(log: Path, about: dict) -> list[dict]:
    """The points that a stopped training has stored in its log; [] if there is no log, or if it has other settings."""
    if not log.exists():
        return []
    record = json.loads(log.read_text("utf-8"))
    return record["points"] if record["about"] == about else []


def _point(
    teacher: Teacher,
    text: MixedWindows,
    held_out: list[Lesson],
    shape: tuple[int, int],
    tokens: int,
    rows: int,
    path: Path,
    seed: int,
) -> dict:
    width, layers = shape
    torch.manual_seed(seed)
    sizes = {"hidden_size": width, "intermediate_size": 5 * width // 2, "head_dim": width // HEADS}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": HEADS}
    vocabulary = teacher.module.get_output_embeddings().weight.shape[0]
    config = draft_config(vocabulary, teacher.end_token, layers, **sizes, **heads)
    draft = LlamaForCausalLM(config).to(teacher.module.device)

    def loss_of(index: int) -> tuple[Tensor, int]:
        ids, counted = (tensor.to(draft.device) for tensor in text.batch(index, rows))
        keep = counted[:, 1:]
        logits = draft(input_ids=ids, use_cache=False).logits[:, :-1][keep]
        return F.cross_entropy(logits.float(), ids[:, 1:][keep]), ids.numel()

    fit(draft, loss_of, Budget(tokens=tokens), path, say=say)
    acceptance = distances(draft, held_out)[KEPT]
    batch = rows * text.tokens.shape[1]
    values = (parameter_count(draft), tokens, batch)
    return {**dict(zip(FACTORS, values, strict=True)), "acceptance": acceptance}


def _row(point: dict) -> str:
    return (
        f"{point['parameters']:11,} {point['tokens']:10,} {point['batch']:6,} "
        f"{point['acceptance']:10.4f}"
    )
