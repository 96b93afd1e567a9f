"""`python -m engine bench --suite overlap`: does it pay to draft while the target verifies?

Drafters that draft during the target's pass against the chain with the same draft model, in turns on the same prompts,
greedy. All have the same two cores: the chain computes with two threads, the others with one thread in each of two
lanes.
"""

from collections.abc import Sequence

import torch

from engine.bench.contestants import Ours, chain
from engine.bench.report import Report, figures, setting, table
from engine.bench.suite import Cards, Plan, Suite, by_contestant, choose, sums
from engine.core.step import Span
from engine.methods import drafters
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=1, rounds=3, tokens=128), Plan(prompts=1, rounds=1, tokens=128)
LENGTHS = (2, 3, 4, 6, 8)  # drafted during one pass
WORTH = 1 / 3  # the share of a chain's step that drafting must take for the comparison to say much
COUNTERS = {
    "milliseconds": lambda step: sum(step.milliseconds.values()),
    "covered": lambda step: covered(step.spans),
    "together": lambda step: together(step.spans),
}


def covered(spans: Sequence[Span]) -> float:
    """Milliseconds from the first span's start to the last one's end."""
    return max(span.end for span in spans) - min(span.start for span in spans) if spans else 0.0


def together(spans: Sequence[Span]) -> float:
    """Milliseconds in which the target's lane and another one were at work."""
    own = [span for span in spans if span.lane == "target"]
    others = [span for span in spans if span.lane != "target"]
    return sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in own for b in others)


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row, draft_share is the share of the steps' time in which only the draft was at work, ``both`` the share of the
    time covered by spans in which both lanes were; None without spans."""
    models = load_models(paths, chain().needs, "float32", "cpu")
    plan = QUICK if quick else FULL
    ours = [Ours(chain(), models, recorded=True)]
    ours += [
        Ours(cls, models, "", {"length": length}, recorded=True)
        for cls in drafters().values()
        if cls.loop == "overlapped" and cls.needs == chain().needs
        for length in LENGTHS
    ]
    for contestant in ours:
        contestant.name = f"{contestant.name} {contestant.options['length']}"
    suite = Suite(ours, choose(models, workloads, plan), plan, COUNTERS, warm_up="once")
    rows = [
        {"name": name}
        | {sum_: count[sum_] for sum_ in ("tokens", "steps", *COUNTERS)}
        | {
            "alone": count["draft"],
            "tokens_per_second": 1000 * count["tokens"] / count["milliseconds"],
        }
        | figures(
            count,
            tokens_per_step="tokens / steps",
            draft_share="draft / milliseconds",
            both="together / covered",
        )
        for name, count in sums(suite.run(), by_contestant).items()
    ]
    own, *others = rows
    best = max(others, key=lambda row: row["tokens_per_second"])
    ratio = best["tokens_per_second"] / own["tokens_per_second"]
    columns = "name tokens_per_second:.1f tokens_per_step:.2f draft_alone=draft_share:.0% both_at_work=both:.0%"
    lines = [
        table(rows, columns),
        f"{best['name']}, the best, against {own['name']}: {ratio:.2f}, with {torch.get_num_threads()} threads",
    ]
    if own["draft_share"] < WORTH:
        lines.append(
            f"The chain's draft takes {own['draft_share']:.0%} of a step; there is little to overlap below {WORTH:.0%}."
        )
    draft = models.part("draft").parameters
    return Report("\n".join(lines), setting(models, draft_parameters=draft, rows=rows))
