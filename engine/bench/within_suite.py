"""`python -m engine bench --suite within`: how much trained parts gain.

Parts are modules that were trained beside the target: extra heads, draft models that read the target's hidden states,
copies of the target's own layers, the head that decides when a chain ends, a draft model with another vocabulary, and a
diffusion model. The contestants take turns and decode greedily. The figures are the goals that the methods' cards
declare for this suite, and a contestant takes part only on the workloads of its figures. If a part is not shipped, or
belongs to another target, the figure is replaced by one sentence.
"""

from collections.abc import Sequence
from dataclasses import asdict

from engine.bench.bench_figures import rows
from engine.bench.contestants import Ours, chain, plain
from engine.bench.goals import FIXED, Aim, Entrant, Goal, aims, goal_table
from engine.bench.report import Report, setting
from engine.bench.suite import Cards, Plan, Result, Suite, alike, choose
from engine.errors import UserError
from engine.methods import drafter
from engine.parts.loading import ModelPaths, Models, load_models

FULL = Plan(prompts=6, rounds=3, tokens=128)
QUICK = Plan(prompts=2, rounds=1, tokens=48)
LENGTHS = (2, 3, 4, 6, 8, 12)  # of chains that never stop early


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    figures, models = aims("within"), load_models(paths, {}, "float32", "cpu")
    plan = QUICK if quick else FULL
    lineup, absent = contestants(figures, paths)
    results: list[Result] = []
    for workload, cards in workloads.items():
        present = [lineup[name] for name in needed(figures, workload) if name in lineup]
        prompts = choose(models, {workload: cards}, plan)
        results += Suite(present, prompts, plan, warm_up="text").run()
    table = rows(results, {name: contestant.group for name, contestant in lineup.items()})
    goals = [figure.goal(table, absent) for figure in figures]
    options = {name: contestant.options for name, contestant in lineup.items()}
    about = {"dtype": "float32", "device": "cpu", "plan": asdict(plan), "options": options}
    lines = [_row(*pair) for pair in zip(figures, goals, strict=True)]
    equal = alike(results, plain().key)
    equal.pop(plain().key)
    compared = sum(result.contestant in equal and not result.round for result in results)
    text = (
        f"{goal_table(goals)}\n"
        f"{sum(equal.values())} of {compared} texts written as plain decoding writes them"
    )
    return Report(text, {"setting": setting(models, **about), "rows": lines})


def _row(figure: Aim, goal: Goal) -> dict:
    about = {"of": figure.own.name, "kind": figure.kind, "beside": figure.over}
    verdict = {None: "", True: "met", False: "missed"}[goal.met]
    return about | {"workloads": figure.workloads, **asdict(goal), "verdict": verdict}


def entrants(figure: Aim) -> list[Entrant]:
    """The contestants that a figure needs. If the figure's rival is the best fixed chain, these include chains of all
    fixed lengths."""
    return figure.entrants + (fixed_chains() if figure.over == FIXED else [])


def fixed_chains() -> list[Entrant]:
    return [
        Entrant(f"chain of {length}", chain().key, {"length": length, "stop_below": 0.0})
        for length in LENGTHS
    ]


def contestants(
    figures: Sequence[Aim], paths: ModelPaths
) -> tuple[dict[str, Ours], dict[str, str]]:
    """The contestants that all figures need, by name; and the reason, one sentence, of each contestant that cannot take
    part, by name."""
    present, absent, fixed = {}, {}, fixed_chains()
    every = [
        Entrant(plain().key, plain().key),
        *(entrant for figure in figures for entrant in entrants(figure)),
    ]
    for entrant in {entrant.name: entrant for entrant in every}.values():
        try:
            present[entrant.name] = entered(entrant, paths)
            present[entrant.name].group = FIXED if entrant in fixed else "ours"
        except UserError as error:
            absent[entrant.name] = str(error)
    return present, absent


def needed(figures: Sequence[Aim], workload: str) -> list[str]:
    """The names of the contestants that the figures need on this workload. Plain decoding is first, because all texts
    are compared with its texts."""
    names = [plain().key]
    for figure in figures:
        if not figure.workloads or workload in figure.workloads:
            names += [entrant.name for entrant in entrants(figure)]
    return list(dict.fromkeys(names))


def entered(entrant: Entrant, paths: ModelPaths) -> Ours:
    """The contestant for an entrant. Raises UserError if a part is missing or does not fit the target."""
    cls = drafter(entrant.key)
    roles = dict(cls.needs)
    if entrant.part:
        ((own, kind),) = cls.needs.items()
        roles = {entrant.part: kind}
    for role in roles:
        if role not in paths.parts:
            raise UserError(
                f"The part {role} is not shipped; `python -m engine.training {role}` makes it."
            )
    models = load_models(paths, roles, "float32", "cpu")
    if entrant.part:
        folders = {"target": models.folders["target"], own: models.folders[entrant.part]}
        models = Models(models.target, {own: models.part(entrant.part)}, folders)
    return Ours(cls, models, entrant.name, entrant.options)
