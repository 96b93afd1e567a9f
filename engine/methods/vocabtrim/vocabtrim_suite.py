"""`python -m engine bench --suite vocabtrim`: bytes saved and accepted tokens lost, by the kept share of the draft
model's head.

Greedy texts on all workloads, with drafts of one fixed length. The texts are the same for all sizes of the head; only
the number of steps and the time differ.
"""

from engine.bench.contestants import Ours
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Suite, alike, by_contestant, choose, sums
from engine.methods.vocabtrim.drafter import VocabTrimDrafter, kept_tokens
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=3, rounds=1, tokens=96), Plan(prompts=1, rounds=1, tokens=96)
SHARES, QUICK_SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32), (1.0, 1 / 4, 1 / 16)
LENGTH = 4


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report has these entries, among others. share: the kept share of the head; the first
    row is the whole head. missing: the share of the texts' tokens that the head lacks. texts: how many texts equal
    those of the whole head."""
    models, plan = (
        load_models(paths, VocabTrimDrafter.needs, "float32", "cpu"),
        QUICK if quick else FULL,
    )
    draft, vocabulary = models.part("draft"), models.part("vocabulary")
    shares = {f"{share:.1%}": share for share in (QUICK_SHARES if quick else SHARES)}
    options = {"length": LENGTH, "stop_below": 0.0}
    ours = [
        Ours(VocabTrimDrafter, models, name, {**options, "kept": share})
        for name, share in shares.items()
    ]
    results = Suite(ours, choose(models, workloads, plan), plan, warm_up="once").run()
    equal, rows = alike(results, ours[0].name), []
    for name, count in sums(results, by_contestant).items():
        kept = kept_tokens(vocabulary, shares[name], draft.vocab_size)
        vocabulary_kept = set(kept.tolist())
        texts = [result.writing.tokens for result in results if result.contestant == name]
        count["lacking"] = sum(token not in vocabulary_kept for text in texts for token in text)
        kilobytes = len(kept) * draft.hidden_size * draft.dtype.itemsize / 1000
        rows.append(
            {"share": shares[name], "tokens": len(kept), "kilobytes": kilobytes}
            | figures(
                count,
                missing="lacking / tokens",
                tokens_per_step="tokens / steps",
                draft_milliseconds="draft / steps",
                tokens_per_second="tokens / seconds",
            )
            | {"texts": equal[name]}
        )
    for row in rows:
        row["saved"] = 1 - row["kilobytes"] / rows[0]["kilobytes"]
        row["lost"] = 1 - row["tokens_per_step"] / rows[0]["tokens_per_step"]
    columns = (
        "kept=share:.1% tokens:, kilobytes:,.0f saved:.0% missing:.2% tokens_per_step:.2f lost:.1% "
        "draft_milliseconds:.2f tokens_per_second:.1f"
    )
    return Report(
        f"{table(rows, columns)}\nmissing: tokens of the texts that the head lacks; "
        f"{sum(equal.values())} of {len(results)} texts written alike",
        rows,
    )
