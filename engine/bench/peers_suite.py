"""`python -m engine bench`: compares all drafters that write the target's own text with transformers' own ``generate``.

All contestants decode greedily in fp32, with the same weights and prompts, and take turns within one process. The peers
run on modules of their own, which the engine never changes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from engine.bench.agreement import Difference, differences
from engine.bench.bench_figures import Row, geometric_mean, profiles, rows
from engine.bench.contestants import Contestant, Ours, our_contestants
from engine.bench.goals import Goal, goal_table, goals
from engine.bench.peers import SCHEDULES, Generate, peer_contestants
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, Plan, Result, Suite, choose
from engine.core.step import STAGES
from engine.fast.cpu.stored_products import reads_stored
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models
from engine.sizes.verify_cost import verify_costs

FULL = Plan(prompts=6, rounds=3, tokens=128)
QUICK = Plan(prompts=2, rounds=2, tokens=48)
QUICK_SCHEDULES = (("constant", 3), ("heuristic", 5))  # of assisted generation, besides its default


@dataclass(frozen=True)
class Race:
    """The results of one comparison. table: figures by workload and contestant. costs: milliseconds of a target pass,
    by number of nodes. different: the texts that differ from those of the reference contestant."""

    models: Models
    suite: Suite
    results: Sequence[Result]
    table: Sequence[Row]
    costs: Mapping[int, float]
    different: Sequence[Difference]

    @property
    def texts(self) -> Counter[str]:
        """The number of texts that each contestant wrote in the first round."""
        return Counter(result.contestant for result in self.results if not result.round)

    @property
    def equal(self) -> Counter[str]:
        """The number of each contestant's texts in the first round that equal those of the reference contestant."""
        return self.texts - Counter(entry.contestant for entry in self.different)


Judge = Callable[[Race], list[Goal]]


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. quick: use two prompts of each workload, two rounds, and fewer schedules."""
    plan, schedules = (QUICK, QUICK_SCHEDULES) if quick else (FULL, tuple(SCHEDULES))
    peers = peer_contestants(paths, schedules)
    return beside(paths, workloads, plan, peers, peers[0], _judged, schedules=schedules)


def _judged(race: Race) -> list[Goal]:
    return goals(race.table, race.costs[8] / race.costs[0])


RATES = ["tokens/s=tokens_per_second:.1f", "/plain=to_plain:.2f", "/none=to_none:.2f"]
COUNTS = ["accepted=mean_accepted:.2f", "calls"]


def report_text(race: Race, aims: Sequence[Goal]) -> str:
    """The report's text: tables of speeds, means and stages, the costs of passes, the differing texts and the goals."""
    parts = []
    for workload in dict.fromkeys(row.workload for row in race.table):
        lines = [asdict(row) for row in race.table if row.workload == workload]
        parts.append(table(lines, [f"{workload}=contestant", *RATES, *COUNTS]))
    parts.append(table(_means(race.table), ["geometric means=contestant", *RATES]))
    stages = [entry | entry["stages"] for entry in profiles(race.results)]
    for entry in stages:
        entry["all"] = entry["rest"] + sum(entry["stages"].values())
    columns = [f"{name}:.2f" for name in ("all", *STAGES, "rest", "prefill")]
    parts.append(table(stages, ["ms of a step=contestant", *columns]))
    pairs = ", ".join(f"{nodes} nodes {ms:.2f} ms" for nodes, ms in race.costs.items())
    parts.append(f"one pass of the target over root and nodes: {pairs}")
    parts += [agreement(race), goal_table(aims)]
    return "\n\n".join(parts)


def beside(
    paths: ModelPaths,
    workloads: Cards,
    plan: Plan,
    peers: Sequence[Contestant],
    reference: Generate,
    judge: Judge,
    enter: Callable[[Models], list[Ours]] = our_contestants,
    tell: Callable[[Race, Sequence[Goal]], str] = report_text,
    turns: bool = False,
    **more: object,
) -> Report:
    """Compare this engine with the contestants ``peers``; returns the report.

    workloads: prompts, {"id", "prompt"}, by workload. reference: the contestant with whose texts all texts are
    compared. judge: a function that returns the goals of a comparison. enter: a function that returns this engine's
    contestants. tell: a function that returns the report's text. turns: whether to wrap each prompt as a user's turn.
    more: further fields of the report's setting.
    """
    models = load_models(paths, needed(paths), "float32", "cpu")
    ours = enter(models)
    prompts = choose(models, workloads, plan, turns)
    suite = Suite([*peers, *ours], prompts, plan, warm_up="text")
    results = suite.run()
    table_rows = rows(results, {entry.name: entry.group for entry in suite.contestants})
    costs = verify_costs(models.target)
    different = differences(results, reference.name, reference.logits)
    race = Race(models, suite, results, table_rows, costs, different)
    aims = judge(race)
    about = {"dtype": "float32", "device": "cpu", "plan": asdict(plan) | more}
    about["weights"] = "stored" if reads_stored() else "unpacked"
    about["options"] = {contestant.name: contestant.options for contestant in ours}
    data = {
        "kind": "bench",
        "schema": 1,
        "setting": setting(models, **about),
        "rows": [asdict(row) for row in table_rows],
        "verify_milliseconds": {str(nodes): ms for nodes, ms in costs.items()},
        "profiles": profiles(results),
        "differences": [asdict(entry) | {"numerics": entry.numerics} for entry in different],
        "goals": [goal.to_dict() for goal in aims],
    }
    return Report(tell(race, aims), data)


def needed(paths: ModelPaths) -> dict[str, str]:
    """The kind of every part (trained module beside the target) that exists and that a drafter uses, by role."""
    needs = {role: kind for cls in drafters().values() for role, kind in cls.needs.items()}
    return {role: kind for role, kind in needs.items() if role in paths.parts}


def _means(table_rows: Sequence[Row]) -> list[dict]:
    means = []
    for name in dict.fromkeys(row.contestant for row in table_rows):
        row = {"contestant": name}
        for field in ("tokens_per_second", "to_plain", "to_none"):
            values = [getattr(entry, field) for entry in table_rows if entry.contestant == name]
            row[field] = None if None in values else geometric_mean(values)
        means.append(row)
    return means


def agreement(race: Race) -> str:
    compared, different = sum(race.texts.values()), race.different
    near = sum(entry.numerics for entry in different)
    equal = f"outputs: {compared - len(different)} of {compared} equal"
    lines = [f"{equal}, {near} differ at a near tie, {len(different) - near} differ otherwise"]
    lines += [
        f"  {entry.contestant} on {entry.prompt}: token {entry.position}, margin {entry.margin:.2g}"
        for entry in different
    ]
    return "\n".join(lines)
