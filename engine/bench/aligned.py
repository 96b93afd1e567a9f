"""`python -m engine bench --suite aligned`: a draft before and after its training, at temperature 1.

Compares the family's draft with the drafts that the recipes `distillspec`, `fastdraft` and `direct_align` left among
the target's parts, and with the larger draft, by workload. On texts that the target wrote, the expected acceptance of
a drafted token is the sum over x of min(p(x), q(x)). Every draft is judged by its mean over the same positions, because the share kept in a run of
a few texts varies about as much as a recipe gains. That share, in real runs of ``chain`` with rejection sampling, stands
beside it; then how far each draft's distributions are from the target's on the same texts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.command import check_writable
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.trace import write_lines
from engine.training.divergences import DIVERGENCES

START = "start"
RECIPES = ("distillspec", "fastdraft", "direct_align")
LARGER = "draft-3m"
TOKENS, PROMPTS, LENGTH = 96, 6, 4
GAIN, WORKLOADS = 0.03, 3
"""A recipe must gain at least ``GAIN`` in expected acceptance on at least ``WORKLOADS`` workloads."""

Texts = Mapping[str, Sequence[tuple[int, list[int]]]]
"""By workload: (length of the prompt, all tokens) of each text."""

Laws = tuple[Tensor, Tensor]
"""Log-probabilities of target and draft, [N, V] each, at the same positions."""


@dataclass(frozen=True)
class Row:
    """One draft. expected: the expected acceptance on the texts that the target wrote, by workload. kept: the share
    of judged tokens that was kept in the runs, by workload. tokens_per_step: over all runs, the final token included.
    distances: mean divergences from the target on the texts that the target wrote, by name."""

    draft: str
    expected: Mapping[str, float]
    kept: Mapping[str, float]
    tokens_per_step: float
    distances: Mapping[str, float]


def aligned(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: one prompt of each workload."""
    count = 1 if quick else PROMPTS
    prompts = {name: [c["prompt"] for c in cards[:count]] for name, cards in workloads.items()}
    run_aligned(paths, prompts, out)


def run_aligned(
    paths: ModelPaths, prompts: Mapping[str, Sequence[str]], out: str | None
) -> list[Row]:
    """Measure, print three tables, and write JSON where ``out`` says. prompts: by workload.

    Raises UserError where there is no draft to compare the start with."""
    if out is not None:
        check_writable(Path(out))
    found = {START: paths.parts.get("draft")} | {
        key: paths.parts.get(key) for key in (*RECIPES, LARGER)
    }
    drafts = {name: path for name, path in found.items() if path is not None}
    if START not in drafts or len(drafts) < 2:
        raise UserError(
            "There is nothing to compare: the recipes distillspec, fastdraft and direct_align make drafts "
            "(--part distillspec=DIR)."
        )
    rows, texts = [], None
    for name, path in drafts.items():
        models = load_models(
            paths.with_parts({"draft": path}), {"draft": "draft"}, "float32", "cpu"
        )
        read = models.target.tokenizer
        given = {kind: [read(one)["input_ids"] for one in some] for kind, some in prompts.items()}
        with torch_threads(models.target.torch_threads):
            if texts is None:
                texts = {kind: [whole(models, p) for p in some] for kind, some in given.items()}
            rows.append(measured(name, models, given, texts))
    print(table(rows))
    if out is not None:
        write_lines(out, [json.dumps([asdict(row) for row in rows], indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return rows


def measured(name: str, models: Models, given: Mapping[str, list], texts: Texts) -> Row:
    kept, tokens, steps = {}, 0, 0
    for kind, prompts in given.items():
        taken = [step for one in prompts for step in written(models, "chain", one)]
        judged = sum(min(len(step.verdict.accepted) + 1, len(step.tree)) for step in taken)
        kept[kind] = sum(len(step.verdict.accepted) for step in taken) / max(1, judged)
        tokens, steps = tokens + sum(len(step.output) for step in taken), steps + len(taken)
    found = {kind: laws(models, some) for kind, some in texts.items()}
    return Row(name, expected(found), kept, tokens / steps, distances(found))


def written(models: Models, key: str, prompt: list[int]) -> list[Step]:
    """The steps of a text at temperature 1."""
    cls = drafter(key)
    options = {"length": LENGTH} if key == "chain" else {}
    made = cls.build(resolve(key, cls.options, options), models)
    request = TextRequest(made, verifier("rejection"), Sampling(1.0, seed=1), prompt, TOKENS)
    return list(run_loop(models.target, request, recorded=False))


def whole(models: Models, prompt: list[int]) -> tuple[int, list[int]]:
    """The target's continuation: (length of the prompt, all tokens)."""
    steps = written(models, "none", prompt)
    return len(prompt), [*prompt, *(token for step in steps for token in step.output)]


def laws(models: Models, texts: Sequence[tuple[int, list[int]]]) -> Laws:
    """Log-probabilities of target and draft before every token that the texts add to their prompts."""
    rows = [
        [_laws(model, tokens)[start - 1 : -1] for start, tokens in texts]
        for model in (models.target, models.part("draft"))
    ]
    log_p, log_q = (torch.cat(some) for some in rows)
    size = min(log_p.shape[-1], log_q.shape[-1])  # one tokenizer, padded to different sizes
    return log_p[:, :size], log_q[:, :size]


def expected(found: Mapping[str, Laws]) -> dict[str, float]:
    """By workload, how likely a token drawn from q is to be accepted, a mean over the positions."""
    return {
        kind: float(torch.minimum(log_p, log_q).exp().sum(-1).mean())
        for kind, (log_p, log_q) in found.items()
    }


def distances(found: Mapping[str, Laws]) -> dict[str, float]:
    """Mean divergences of the draft's distributions from the target's, over all positions of all workloads."""
    return {
        name: float(torch.cat([divergence(q, p) for p, q in found.values()]).mean())
        for name, divergence in DIVERGENCES.items()
    }


def _laws(model: LanguageModel, tokens: list[int]) -> Tensor:
    """Log-probabilities [T, V] after each token."""
    session = model.session(len(tokens))
    logits, _ = session.feed(tokens, range(-1, len(tokens) - 1))
    return F.log_softmax(logits.float(), -1)


def table(rows: Sequence[Row]) -> str:
    kinds, start = list(rows[0].expected), rows[0]
    heads = " ".join(f"{kind:>10}" for kind in kinds)
    lines = [f"{'expected':>15} {heads} {'mean':>6}"]
    lines += [_shares(row.draft, row.expected, kinds) for row in rows]
    for row in (row for row in rows if row.draft in RECIPES):
        won = sum(row.expected[kind] - start.expected[kind] >= GAIN for kind in kinds)
        told = "met" if won >= WORKLOADS else "missed"
        lines.append(
            f"{row.draft}: {GAIN} or more above the start on {won} of {len(kinds)} workloads ({told}: {WORKLOADS})"
        )
    lines += ["", f"{'kept in runs':>15} {heads} {'mean':>6} {'tokens/step':>11}"]
    for row in rows:
        lines.append(f"{_shares(row.draft, row.kept, kinds)} {row.tokens_per_step:11.2f}")
    lines += ["", f"{'divergence':>15} " + " ".join(f"{name:>15}" for name in DIVERGENCES)]
    for row in rows:
        values = " ".join(f"{row.distances[name]:15.4f}" for name in DIVERGENCES)
        lines.append(f"{row.draft:>15} {values}")
    return "\n".join(lines)


def _shares(draft: str, of: Mapping[str, float], kinds: Sequence[str]) -> str:
    shares = " ".join(f"{of[kind]:10.3f}" for kind in kinds)
    return f"{draft:>15} {shares} {mean(of.values()):6.3f}"
