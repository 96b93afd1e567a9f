"""`python -m engine bench --suite within`: what trained parts gain: heads, features and own layers of the target, the
head that stops a chain, a draft with another vocabulary, and a diffusion model of its own.

Greedy texts, contestants in turn; each contestant takes part only on the workloads of its figures. A figure whose part
is not shipped, or belongs to another target, is replaced by one sentence.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engine.bench.bench_figures import geometric_mean
from engine.bench.bench_figures import rows as figures
from engine.bench.command import Plan, check_writable, choose, setting
from engine.bench.contestants import Ours
from engine.bench.rounds import Result, race
from engine.core.options import resolve
from engine.errors import UserError
from engine.methods import drafter
from engine.parts.loading import ModelPaths, Models, load_models
from engine.trace import write_lines

FULL = Plan(prompts=6, rounds=3, tokens=128, schedules=())
QUICK = Plan(prompts=2, rounds=1, tokens=48, schedules=())
EVERY = ("story", "edit", "template", "code", "arithmetic", "operations")
RECIPES = {"gto": "eagle", "fspad": "eagle"}
"""Parts that another drafter uses, with its usual tree: the recipe's key -> the drafter's."""
FIXED = {f"chain of {length}": length for length in (2, 3, 4, 6, 8, 12)}
"""Chains that never stop early, by the names that they have as contestants."""
BEST_FIXED = "the best fixed chain"
PAPERS_TREE = 63
"""Nodes of the tree in Medusa's paper."""
TREES = {
    f"{key} of {size}": (key, size)
    for key, size in (
        *(
            (key, drafter(key).usual_size)
            for key in ("medusa", "hydra", "eagle", "hidden_transfer", "ppd")
        ),
        ("medusa", PAPERS_TREE),
    )
}
"""Drafters with their usual number of nodes, or that of their paper, for figures in tokens a step. For figures of speed,
a drafter has the machine's fastest size, which may be a tree of one or two nodes."""
MEDUSA, HYDRA, EAGLE, TRANSFER, PROMPTS, PAPERS = TREES


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    of: the contestant. kind: ``step`` (tokens per step), ``speed`` (tokens per second divided by those of ``beside``, a
    geometric mean), ``faster`` (workloads with more tokens per second than ``beside``) or ``longer`` (tokens per step
    minus those of ``beside``). beside: a contestant, or ``BEST_FIXED``. least: None where the figure is only reported. above: whether the value must exceed
    ``least``.
    """

    of: str
    kind: str
    least: float | None
    aim: float | None
    workloads: tuple[str, ...] = EVERY
    beside: str = ""
    above: bool = False

    @property
    def rivals(self) -> tuple[str, ...]:
        """The contestants beside which ``of`` is measured."""
        if self.beside == BEST_FIXED:
            return tuple(FIXED)
        return (self.beside,) if self.beside else ()

    @property
    def what(self) -> str:
        where = self.workloads[0] if len(self.workloads) == 1 else "all workloads"
        return {
            "step": f"{self.of}, tokens a step, {where}",
            "speed": f"{self.of} / {self.beside}, tokens a second, {where}",
            "faster": f"{self.of} faster than {self.beside}, of {len(self.workloads)} workloads",
            "longer": f"{self.of} - {self.beside}, tokens a step, {where}",
        }[self.kind]


TABLE = (
    Figure(PAPERS, "step", 2.2, None, ("story",)),
    Figure(MEDUSA, "step", None, None, ("story",)),
    Figure(HYDRA, "step", 2.5, None, ("story",)),
    Figure(EAGLE, "step", 2.9, 3.5, ("story",)),
    Figure("eagle", "speed", 1.6, None, beside="none"),
    Figure("eagle", "faster", None, 3, beside="chain"),
    Figure("kangaroo", "speed", 1.15, 1.5, beside="none"),
    Figure("del", "speed", 1.0, 1.3, ("edit",), "none"),
    Figure("swift", "speed", 1.0, 1.3, ("edit",), "none"),
    Figure(TRANSFER, "step", 2, 3, ("template",)),
    Figure(PROMPTS, "step", 2, 3, ("template",)),
    Figure("gto", "longer", 0, None, beside=EAGLE, above=True),
    Figure("fspad", "longer", 0, None, beside=EAGLE, above=True),
    Figure("specdec_pp", "speed", 1.0, 1.1, beside=BEST_FIXED),
    Figure("omnidraft", "step", 1.5, None, ("story",)),
    Figure("deer", "step", 3, None, ("template",)),
    Figure("deer", "step", 3, None, ("code",)),
)


@dataclass(frozen=True)
class Row:
    """value: None where ``reason`` says why there is none."""

    figure: Figure
    value: float | None = None
    reason: str = ""

    @property
    def verdict(self) -> str:
        least, value = self.figure.least, self.value
        if value is None or least is None:
            return ""
        return "met" if (value > least if self.figure.above else value >= least) else "missed"


@dataclass
class _Field:
    """The contestants by name, and for each one that cannot take part a sentence that says why. ``none`` comes
    first."""

    present: dict[str, Ours] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: ModelPaths) -> _Field:
        made = cls()
        named = [name for row in TABLE for name in (row.of, *row.rivals)]
        for name in dict.fromkeys(["none", *named]):
            try:
                made.present[name] = made.contestant(name, paths)
            except UserError as error:
                made.absent[name] = str(error)
        return made

    def contestant(self, name: str, paths: ModelPaths) -> Ours:
        """Raises UserError with one sentence where a part is missing or does not fit."""
        cls = drafter(_drafter_of(name))
        roles = dict(cls.needs)
        if name in RECIPES:
            ((own, kind),) = cls.needs.items()
            roles = {name: kind}
        for role in roles:
            if role not in paths.parts:
                raise UserError(
                    f"The part {role} is not shipped; `python -m engine.training {role}` makes it."
                )
        models = load_models(paths, roles, "float32", "cpu")
        if name in RECIPES:
            folders = {"target": models.folders["target"], own: models.folders[name]}
            models = Models(models.target, {own: models.part(name)}, folders)
        return Ours(cls, models, name, _options_of(name, cls))

    def on(self, workload: str) -> list[Ours]:
        """The contestants that a figure needs on this workload, and ``none``, whose text is the right one."""
        asked = {"none"}
        for row in TABLE:
            if workload in row.workloads:
                asked |= {row.of, *row.rivals}
        return [one for name, one in self.present.items() if name in asked]


def _drafter_of(name: str) -> str:
    if name in FIXED:
        return "chain"
    return TREES[name][0] if name in TREES else RECIPES.get(name, name)


def _options_of(name: str, cls) -> dict | None:
    """The contestant's settled options; None for the fastest size of the machine."""
    if name in FIXED:
        return resolve(cls.key, cls.options, {"length": FIXED[name], "stop_below": 0.0})
    if name in TREES or name in RECIPES:
        size = TREES[name][1] if name in TREES else cls.usual_size
        return resolve(cls.key, cls.options, {cls.size_option: size})
    return None


def within(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], quick: bool, out: str | None
) -> None:
    """The suite. quick: two prompts of each workload, once."""
    run_within(paths, workloads, QUICK if quick else FULL, out)


def run_within(
    paths: ModelPaths, workloads: Mapping[str, Sequence[dict]], plan: Plan, out: str | None
) -> list[Row]:
    """Measure, print the table, and write JSON where ``out`` says."""
    if out is not None:
        check_writable(Path(out))
    taking = _Field.of(paths)
    models = load_models(paths, {}, "float32", "cpu")
    results: list[Result] = []
    for workload in EVERY:
        prompts = choose(models, {workload: workloads[workload]}, plan)
        results += race(taking.on(workload), prompts, plan.rounds, plan.tokens, lambda: None)
    table = [_row(one, results, taking) for one in TABLE]
    print(text(table, results))
    if out is not None:
        ours = list(taking.present.values())
        data = {
            "setting": setting(models, plan, ours),
            "rows": [
                {
                    "what": row.figure.what,
                    **asdict(row.figure),
                    "value": row.value,
                    "reason": row.reason,
                    "verdict": row.verdict,
                }
                for row in table
            ],
        }
        write_lines(out, [json.dumps(data, allow_nan=False, indent=1) + "\n"])
        print(f"written to {out}", file=sys.stderr)
    return table


def _row(figure: Figure, results: Sequence[Result], taking: _Field) -> Row:
    names = (figure.of, *figure.rivals)
    missing = next((name for name in names if name in taking.absent), None)
    if missing is not None:
        return Row(figure, reason=taking.absent[missing])
    groups = dict.fromkeys(names, "ours")
    own = [one for one in results if one.prompt.workload in figure.workloads]
    table = figures([one for one in own if one.contestant in groups], groups)
    speeds = {(row.workload, row.contestant): row.tokens_per_second for row in table}
    if figure.kind in ("step", "longer"):
        steps = [_tokens_a_step(own, name) for name in names]
        return Row(figure, steps[0] - (steps[1] if figure.kind == "longer" else 0))
    ratios = {
        name: [speeds[one, figure.of] / speeds[one, name] for one in figure.workloads]
        for name in figure.rivals
    }
    if figure.kind == "speed":
        return Row(figure, float(min(map(geometric_mean, ratios.values()))))
    return Row(figure, float(sum(one > 1 for one in ratios[figure.beside])))


def _tokens_a_step(results: Sequence[Result], name: str) -> float:
    """Tokens per step over all texts of a contestant, each counted once."""
    writings = [one.writing for one in results if one.contestant == name and one.round == 0]
    return sum(len(one.tokens) for one in writings) / sum(one.calls for one in writings)


def _place(result: Result) -> tuple[str, str]:
    return result.prompt.workload, result.prompt.name


def text(table: Sequence[Row], results: Sequence[Result]) -> str:
    wide = max(len(row.figure.what) for row in table)
    lines = [f"{'':{wide}} {'at least':>9} {'aim':>6} {'here':>7}"]
    for row in table:
        figure = row.figure
        least = "" if figure.least is None else f"{'> ' if figure.above else ''}{figure.least:g}"
        aim = "" if figure.aim is None else f"{figure.aim:g}"
        here = (
            f"{row.value:7.2f} {row.verdict}" if row.value is not None else f"      - {row.reason}"
        )
        lines.append(f"{figure.what:{wide}} {least:>9} {aim:>6} {here}".rstrip())
    right = {_place(one): one.writing.tokens for one in results if one.contestant == "none"}
    others = [one for one in results if one.contestant != "none" and not one.round]
    alike = sum(one.writing.tokens == right[_place(one)] for one in others)
    lines.append(f"{alike} of {len(others)} texts written as plain decoding writes them")
    return "\n".join(lines)
