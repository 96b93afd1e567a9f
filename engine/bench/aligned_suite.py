"""`python -m engine bench --suite aligned`: a draft before and after its training, at temperature 1.

Compares the family's draft with the drafts that recipes left among the target's parts (those that make a draft for
``chain`` of the family's own, such as ``distillspec``), and with the larger draft, by workload. On texts that the
target wrote, the expected acceptance of a drafted token is the sum over x of min(p(x), q(x)). Every draft is judged by
its mean over the same positions, because the share kept in a run of a few texts varies about as much as a recipe gains.
That share, in real runs of ``chain`` with rejection sampling, stands beside it; then how far each draft's distributions
are from the target's on the same texts.
"""

from collections.abc import Mapping, Sequence
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.contestants import Ours, chain, plain
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, Result, Suite, by_contestant, choose, sums
from engine.core.sampling import Sampling
from engine.core.threads import torch_threads
from engine.errors import UserError
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.training.divergences import DIVERGENCES
from engine.training.students import students
from engine.training.students.draft_students import DraftStudent

FULL, QUICK = Plan(prompts=6, rounds=1, tokens=96), Plan(prompts=1, rounds=1, tokens=96)
START, LARGER = "start", "draft-3m"
LENGTH = 4
GAIN, WORKLOADS = 0.03, 3
"""A recipe must gain at least ``GAIN`` in expected acceptance on at least ``WORKLOADS`` workloads."""
COUNTERS = {"judged": lambda step: min(len(step.verdict.accepted) + 1, len(step.tree))}
SAMPLING = Sampling(1.0, seed=1)

Texts = Mapping[str, Sequence[tuple[int, list[int]]]]
"""By workload: (length of the prompt, all tokens) of each text."""

Laws = tuple[Tensor, Tensor]
"""Log-probabilities of target and draft, [N, V] each, at the same positions."""


def recipes() -> list[str]:
    """Those whose draft is opened like the family's own, and not by a drafter of its own."""
    return [
        key
        for key, student in students().items()
        if issubclass(student, DraftStudent) and key not in drafters()
    ]


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: expected: the expected acceptance on the texts that the target wrote, by workload. kept: the share of
    judged tokens that was kept in the runs, by workload. tokens_per_step: over all runs, the final token included.
    distances: mean divergences from the target on the texts that the target wrote, by name. Raises UserError where there
    is no draft to compare the start with."""
    pairs = {
        name: load_models(pair, chain().needs, "float32", "cpu") for name, pair in drafts(paths)
    }
    plan, models = QUICK if quick else FULL, pairs[START]
    rule = verifier("rejection")
    ours = [Ours(plain(), models, "", {}, SAMPLING, rule)]
    ours += [
        Ours(chain(), pair, name, {"length": LENGTH}, SAMPLING, rule)
        for name, pair in pairs.items()
    ]
    results = Suite(ours, choose(models, workloads, plan), plan, COUNTERS).run()
    texts, counts, totals = _texts(results), sums(results), sums(results, by_contestant)
    rows = []
    for name, pair in pairs.items():
        with torch_threads(models.target.torch_threads):
            laws_of = {kind: laws(pair, pieces) for kind, pieces in texts.items()}
        kept = {kind: counts[kind, name] for kind in texts}
        rows.append(
            {
                "draft": name,
                "expected": expected(laws_of),
                "kept": {kind: n["accepted"] / max(1, n["judged"]) for kind, n in kept.items()},
                "tokens_per_step": totals[name]["tokens"] / totals[name]["steps"],
                "distances": distances(laws_of),
            }
        )
    return Report(report_text(rows), rows)


def drafts(paths: ModelPaths) -> list[tuple[str, ModelPaths]]:
    """The names of the drafts that there are, and the models with each of them as the draft."""
    roles = {START: "draft"} | {key: key for key in (*recipes(), LARGER)}
    places = [(name, paths.parts[role]) for name, role in roles.items() if role in paths.parts]
    if START not in dict(places) or len(places) < 2:
        names = ", ".join(recipes())
        raise UserError(
            f"There is nothing to compare: the recipes {names} make drafts (--part {recipes()[0]}=DIR)."
        )
    return [(name, paths.with_parts({"draft": path})) for name, path in places]


def _texts(results: Sequence[Result]) -> Texts:
    """The target's continuations."""
    texts: dict[str, list] = {}
    for result in (result for result in results if result.contestant == plain().key):
        prompt = list(result.prompt.tokens)
        text = len(prompt), [*prompt, *result.writing.tokens]
        texts.setdefault(result.prompt.workload, []).append(text)
    return texts


def laws(models: Models, texts: Sequence[tuple[int, list[int]]]) -> Laws:
    """Log-probabilities of target and draft before every token that the texts add to their prompts."""
    rows = [
        [_laws(model, tokens)[start - 1 : -1] for start, tokens in texts]
        for model in (models.target, models.part("draft"))
    ]
    log_p, log_q = (torch.cat(parts) for parts in rows)
    size = min(log_p.shape[-1], log_q.shape[-1])  # one tokenizer, padded to different sizes
    return log_p[:, :size], log_q[:, :size]


def expected(laws_of: Mapping[str, Laws]) -> dict[str, float]:
    """By workload, how likely a token drawn from q is to be accepted, a mean over the positions."""
    return {
        kind: float(torch.minimum(log_p, log_q).exp().sum(-1).mean())
        for kind, (log_p, log_q) in laws_of.items()
    }


def distances(laws_of: Mapping[str, Laws]) -> dict[str, float]:
    """Mean divergences of the draft's distributions from the target's, over all positions of all workloads."""
    return {
        name: float(torch.cat([divergence(q, p) for p, q in laws_of.values()]).mean())
        for name, divergence in DIVERGENCES.items()
    }


def _laws(model: LanguageModel, tokens: list[int]) -> Tensor:
    """Log-probabilities [T, V] after each token."""
    session = model.session(len(tokens))
    logits, _ = session.feed(tokens, range(-1, len(tokens) - 1))
    return F.log_softmax(logits.float(), -1)


def report_text(rows: Sequence[Mapping]) -> str:
    kinds, start = list(rows[0]["expected"]), rows[0]
    lines = [_shares("expected", rows)]
    for row in (row for row in rows if row["draft"] in recipes()):
        won = sum(row["expected"][kind] - start["expected"][kind] >= GAIN for kind in kinds)
        verdict = "met" if won >= WORKLOADS else "missed"
        lines.append(
            f"{row['draft']}: {GAIN} or more above the start on {won} of {len(kinds)} workloads ({verdict}: {WORKLOADS})"
        )
    lines += ["", _shares("kept", rows, "kept in runs", ["tokens_per_step:.2f"])]
    distances = ["divergence=draft", *(f"{name}:.4f" for name in DIVERGENCES)]
    return "\n".join([*lines, "", table([row | row["distances"] for row in rows], distances)])


def _shares(field: str, rows: Sequence[Mapping], head: str = "", more: Sequence[str] = ()) -> str:
    cells = [row | row[field] | {"mean": mean(row[field].values())} for row in rows]
    kinds = [f"{kind}:.3f" for kind in (*rows[0][field], "mean")]
    return table(cells, [f"{head or field}=draft", *kinds, *more])
