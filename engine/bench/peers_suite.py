"""`python -m engine bench`: all drafters that write the target's own text, beside transformers' own generate.

All contestants decode greedily in fp32, on the same weights and prompts, taking turns within one process. The peers run
on modules of their own, which the engine never touches.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from engine.bench.agreement import Difference, differences
from engine.bench.bench_figures import Row, geometric_mean, profiles, rows
from engine.bench.contestants import Contestant, our_contestants
from engine.bench.goals import Goal, goal_table, goals
from engine.bench.peers import SCHEDULES, Generate, peer_contestants
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, Plan, Suite, choose
from engine.bench.verify_cost import verify_costs
from engine.core.step import STAGES
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models

FULL = Plan(prompts=6, rounds=3, tokens=128)
QUICK = Plan(prompts=2, rounds=2, tokens=48)
QUICK_SCHEDULES = (("constant", 3), ("heuristic", 5))  # of assisted generation, besides its default
Judge = Callable[[Models, list[Row], dict[int, float], Suite], list[Goal]]
"""Makes goals of the models, the table, the costs of passes by nodes, and the suite."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """quick: two prompts of each workload, two rounds, and fewer schedules."""
    plan, schedules = (QUICK, QUICK_SCHEDULES) if quick else (FULL, tuple(SCHEDULES))
    others = peer_contestants(paths, schedules)
    return beside(paths, workloads, plan, others, others[0], _judged, schedules=schedules)


def _judged(models: Models, table: list[Row], costs: dict[int, float], suite: Suite) -> list[Goal]:
    return goals(table, costs[8] / costs[0])


def beside(
    paths: ModelPaths,
    workloads: Cards,
    plan: Plan,
    peers: Sequence[Contestant],
    reference: Generate,
    judge: Judge,
    **more: object,
) -> Report:
    """This engine beside these peers. workloads: {"id", "prompt"} by workload. reference: writes the texts with which all
    others are compared. more: of the setting."""
    models = load_models(paths, needed(paths), "float32", "cpu")
    ours = our_contestants(models)
    suite = Suite([*peers, *ours], choose(models, workloads, plan), plan, warm_up="text")
    results = suite.run()
    table_rows = rows(results, {entry.name: entry.group for entry in suite.contestants})
    costs = verify_costs(models.target)
    aims = judge(models, table_rows, costs, suite)
    different = differences(results, reference.name, reference.logits)
    spent = profiles(results)
    compared = len(suite.contestants) * len(suite.prompts)
    about = {"dtype": "float32", "device": "cpu", "plan": asdict(plan) | more}
    about["options"] = {contestant.name: contestant.options for contestant in ours}
    data = {
        "kind": "bench",
        "schema": 1,
        "setting": setting(models, **about),
        "rows": [asdict(row) for row in table_rows],
        "verify_milliseconds": {str(nodes): ms for nodes, ms in costs.items()},
        "profiles": spent,
        "differences": [asdict(entry) | {"numerics": entry.numerics} for entry in different],
        "goals": [goal.to_dict() for goal in aims],
    }
    return Report(report_text(table_rows, aims, different, costs, spent, compared), data)


def needed(paths: ModelPaths) -> dict[str, str]:
    """Role -> kind of all parts that exist and that some drafter uses."""
    needs = {role: kind for cls in drafters().values() for role, kind in cls.needs.items()}
    return {role: kind for role, kind in needs.items() if role in paths.parts}


RATES = ["tokens/s=tokens_per_second:.1f", "/plain=to_plain:.2f", "/none=to_none:.2f"]
COUNTS = ["accepted=mean_accepted:.2f", "calls"]


def report_text(
    table_rows: Sequence[Row],
    aims: Sequence[Goal],
    different: Sequence[Difference],
    costs: dict[int, float],
    spent: Sequence[dict],
    compared: int,
) -> str:
    """Everything that was measured."""
    parts = []
    for workload in dict.fromkeys(row.workload for row in table_rows):
        lines = [asdict(row) for row in table_rows if row.workload == workload]
        parts.append(table(lines, [f"{workload}=contestant", *RATES, *COUNTS]))
    parts.append(table(_means(table_rows), ["geometric means=contestant", *RATES]))
    stages = [entry | entry["stages"] for entry in spent]
    for entry in stages:
        entry["all"] = entry["rest"] + sum(entry["stages"].values())
    columns = [f"{name}:.2f" for name in ("all", *STAGES, "rest", "prefill")]
    parts.append(table(stages, ["ms of a step=contestant", *columns]))
    pairs = ", ".join(f"{nodes} nodes {ms:.2f} ms" for nodes, ms in costs.items())
    parts.append(f"one pass of the target over root and nodes: {pairs}")
    parts += [_agreement(different, compared), goal_table(aims)]
    return "\n\n".join(parts)


def _means(table_rows: Sequence[Row]) -> list[dict]:
    means = []
    for name in dict.fromkeys(row.contestant for row in table_rows):
        row = {"contestant": name}
        for field in ("tokens_per_second", "to_plain", "to_none"):
            values = [getattr(entry, field) for entry in table_rows if entry.contestant == name]
            row[field] = None if None in values else geometric_mean(values)
        means.append(row)
    return means


def _agreement(different: Sequence[Difference], compared: int) -> str:
    near = sum(entry.numerics for entry in different)
    equal = f"outputs: {compared - len(different)} of {compared} equal"
    lines = [f"{equal}, {near} differ at a near tie, {len(different) - near} differ otherwise"]
    lines += [
        f"  {entry.contestant} on {entry.prompt}: token {entry.position}, margin {entry.margin:.2g}"
        for entry in different
    ]
    return "\n".join(lines)
