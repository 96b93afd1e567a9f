"""`python -m engine bench --suite schema`: how many passes a JSON schema saves, feature by feature.

The suite follows JSONSchemaBench (Geng et al. 2025), but with ten schemas of its own, one for each feature of JSON
Schema. Prompts of the template workload are answered greedily: with each schema by one document, and without a schema
by as many tokens. The suite measures counts, not times, so one round is enough.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from engine.bench.contestants import Ours, chain, plain
from engine.bench.feature_schemas import FEATURES
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Prompt, Suite, choose, sums
from engine.chat.json_schema import JsonSchema
from engine.core.step import Step
from engine.parts.loading import ModelPaths, Models, load_models

FULL, QUICK = Plan(prompts=8, rounds=1, tokens=64), Plan(prompts=2, rounds=1, tokens=64)


def _kept(step: Step) -> int:
    """The number of accepted tokens of a step that were drafted and not forced by the schema."""
    return max(0, len(step.verdict.accepted) - step.tree.forced)


COUNTERS = {
    "forced": lambda step: min(step.tree.forced, len(step.verdict.accepted)),
    "kept": _kept,
    "judged": lambda step: min(_kept(step) + 1, len(step.tree) - step.tree.forced),
}
"""forced: accepted tokens that the schema forced. kept: drafted tokens that were accepted and not forced. judged:
drafted tokens that were judged and not forced."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    models = load_models(paths, chain().needs, "float32", "cpu")
    plan = QUICK if quick else FULL
    prompts = choose(models, {"template": workloads["template"]}, plan)
    rows, whole = [], {}
    for feature, schema in FEATURES.items():
        counts = _counts(models, schema, prompts, plan)
        whole = {name: whole.get(name, Counter()) + counts[name] for name in counts}
        rows.append({"feature": feature} | _row(counts))
    rows.append({"feature": "all"} | _row(whole))
    columns = (
        "feature", "tokens", "forced=forced:.0%", "kept with=kept_with:.0%", "kept without=kept_without:.0%",
        "saved, plain=saved_plain:.0%", "saved, chain=saved_chain:.0%", "chain, free=saved_free:.0%",
    )  # fmt: skip
    note = (
        "forced: share of the tokens. kept: share of the judged drafts of chain, with the schema and in free texts as long. "
        "saved: share of the passes, one a token, that plain decoding and chain do without; chain, free: in free texts."
    )
    return Report(f"{table(rows, columns)}\n{note}", rows)


def _counts(models: Models, schema: dict, prompts: list[Prompt], plan: Plan) -> dict[str, Counter]:
    """The sums of the counters in three runs: in ``plain`` and ``chain``, these two drafters write with the schema; in
    ``free``, the drafter ``chain`` writes without it."""
    target = models.target

    def constraint() -> JsonSchema:
        ends = target.end_tokens
        return JsonSchema(json.dumps(schema), target.tokenizer, target.vocab_size, ends)

    def run(cls: type, prompts: list[Prompt], constraint: Callable | None) -> list:
        ours = Ours(cls, models, options={}, constraint=constraint, recorded=True)
        return Suite([ours], prompts, plan, COUNTERS).run()

    held = {"plain": run(plain(), prompts, constraint), "chain": run(chain(), prompts, constraint)}
    lengths = {result.prompt.name: len(result.writing.tokens) for result in held["chain"]}
    as_long = [replace(prompt, count=lengths[prompt.name]) for prompt in prompts]
    results = held | {"free": run(chain(), as_long, None)}
    return {name: next(iter(sums(texts).values())) for name, texts in results.items()}


def _row(counts: dict[str, Counter]) -> dict:
    saved = {
        f"saved_{name}": 1 - count["steps"] / count["tokens"] for name, count in counts.items()
    }
    # with a draft, some of the forced tokens count as drafted tokens
    return (
        figures(counts["plain"], tokens="tokens", forced="forced / tokens")
        | figures(counts["chain"], kept_with="kept / judged")
        | figures(counts["free"], kept_without="kept / judged")
        | saved
    )
