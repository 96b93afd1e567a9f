"""`python -m engine bench --suite policies`: compares denoising passes with accepted length, for every unmasking
policy.

All policies use one denoiser, blocks of one length and greedy decoding, so they write the same texts and differ only in
passes and steps. Drafters that fill their whole block in one pass take part for comparison. The suite measures counts,
not times.
"""

from engine.bench.contestants import Ours, able, own_options
from engine.bench.report import Report, drawing, figures, table
from engine.bench.suite import Cards, Plan, Suite, choose, sums
from engine.core.drafter import Drafter
from engine.methods import drafters
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=12, rounds=1, tokens=64), Plan(prompts=1, rounds=1, tokens=64)
OPTIONS = {"length": 7, "shortest": 7, "block": 7, "passes": 7, "adaptive": False}
"""Options with which every policy may fill seven positions one by one, in seven passes."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    classes, needs = able(candidates(), paths)
    models = load_models(paths, needs, "float32", "cpu")
    plan = QUICK if quick else FULL
    ours = [Ours(cls, models, "", own_options(cls, OPTIONS), recorded=True) for cls in classes]
    results = Suite(ours, choose(models, workloads, plan), plan).run()
    rows = [
        {"workload": workload, "policy": policy}
        | figures(
            count,
            passes="own passes / steps",
            accepted="accepted / steps",
            accepted_per_pass="accepted / own passes",
        )
        for (workload, policy), count in sums(results).items()
    ]
    picture = drawing(
        "Passes against accepted length",
        "denoising passes a step",
        "accepted tokens a step",
        [(row["policy"], row["workload"], row["passes"], row["accepted"]) for row in rows],
    )
    text = table(rows, "workload policy passes:.2f accepted:.2f accepted_per_pass:.2f")
    return Report(text, {"rows": rows, "figures": [picture]}, "python -m viz.suite draws it")


def candidates() -> list[type[Drafter]]:
    """The drafters that fill one block with a denoiser and draft a single chain from it."""
    return [
        cls
        for cls in drafters().values()
        if issubclass(cls, DiffusionDrafter) and cls.size_option in (None, "length")
    ]
