"""The figures that the project promises. A method's card declares the goals of the method, as ``[[goals]]``. A suite
adds the goals of the engine, and computes all figures from the rows of one run."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from engine.bench.bench_figures import Row, best_of, geometric_mean
from engine.bench.contestants import plain
from engine.bench.report import table as rows_as_text
from engine.errors import UserError
from engine.finding import folders
from engine.methods import drafters

FIXED = "fixed"
GROUPS = {"plain": "", "lookup": "", "assisted": "best assisted", FIXED: "the best fixed chain"}
"""The groups that a card can name as rivals, and the title of each group that has several members."""


@dataclass(frozen=True)
class Goal:
    """A figure of one run, and the value that it must have. what: the title. least: the value must be at least this,
    more than this if ``above``, or at most this if ``at_most``; None if the figure is only reported. aim: the value
    that is hoped for. value: None if this run could not measure the figure; ``reason`` may say why."""

    what: str
    least: float | None
    aim: float | None
    value: float | None
    at_most: bool = False
    above: bool = False
    reason: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None or self.least is None:
            return None
        if self.at_most:
            return self.value <= self.least
        return self.value > self.least if self.above else self.value >= self.least

    def to_dict(self) -> dict:
        return asdict(self) | {"met": self.met}


def goal_table(goals: Sequence[Goal]) -> str:
    rows = []
    for goal in goals:
        sign = "<=" if goal.at_most else ">" if goal.above else ">="
        least = None if goal.least is None else f"{sign} {goal.least:g}"
        verdict = {None: goal.reason, True: "met", False: "NOT met"}[goal.met]
        rows.append({**asdict(goal), "at_least": least, "verdict": verdict})
    return rows_as_text(rows, "what_it_must_show=what at_least aim:g here=value:.2f verdict")


@dataclass(frozen=True)
class Entrant:
    """A contestant that a figure needs. name: the name shown in tables. key: the key of its drafter. options: None
    means the default options with the fastest draft size on this machine. part: the role of a part (a trained module
    beside the target) that this contestant uses instead of the drafter's usual part."""

    name: str
    key: str
    options: Mapping | None = None
    part: str = ""


@dataclass(frozen=True)
class Aim:
    """A goal that a method's card sets for a suite.

    of: the method. suite: the suite that measures it. kind: ``speed`` (tokens per second divided by those of ``over``,
    a geometric mean over the workloads), ``step`` (tokens per step), ``longer`` (tokens per step minus those of
    ``over``) or ``faster`` (number of workloads with more tokens per second than ``over``). over: the rival: another
    contestant, or the best member of one of ``GROUPS``. workloads: empty means all. least, aim, above: as for ``Goal``.
    drafter: where ``of`` names a trained part and not a drafter, the drafter that uses this part. size: the draft size
    at which tokens per step are counted; 0 means the drafter's default. also: further methods; the goal's value is the
    best value among them and ``of``. options, over_options: the options of the method and of its rival.
    """

    of: str
    suite: str
    kind: str = "speed"
    over: str = ""
    workloads: tuple[str, ...] = ()
    least: float | None = None
    aim: float | None = None
    drafter: str = ""
    size: int = 0
    above: bool = False
    also: tuple[str, ...] = ()
    options: Mapping = field(default_factory=dict)
    over_options: Mapping = field(default_factory=dict)

    def goal(self, table: Sequence[Row], absent: Mapping[str, str] | None = None) -> Goal:
        """The goal with its value, from the rows of a run. absent: for each contestant that could not take part, by
        name, the reason."""
        rows = [row for row in table if not self.workloads or row.workload in self.workloads]
        rivals = [entrant.name for entrant in self.entrants[1:]] or group(rows, self.over)
        absentees = [entrant.name for entrant in self.entrants if entrant.name in (absent or {})]
        values = []
        for name in (self.own.name, *self.also) if not absentees else ():
            own = of(rows, name)
            rival_rows = [
                entrant
                for entrant in (of(rows, rival) for rival in rivals)
                if entrant.keys() >= own.keys()
            ]
            if own and (rival_rows or not self.over):
                values.append(FIGURES[self.kind](own, rival_rows))
        what, reason = self._what(rivals), absent[absentees[0]] if absentees else ""
        value = max(values, default=None)
        return Goal(what, self.least, self.aim, value, False, self.above, reason)

    @property
    def own(self) -> Entrant:
        """The method itself as a contestant. Its draft size is fixed if the goal is about tokens per step in the suite
        ``within``; otherwise this machine's costs decide the size, unless the options name one."""
        if self.drafter:
            options = self._sized(self.drafter, self.size).options
            return Entrant(self.of, self.drafter, options, part=self.of)
        return self._sized(self.of, self.size, self.options)

    @property
    def entrants(self) -> list[Entrant]:
        """The method and its rival as contestants; the method alone if the rival is a group or there is none."""
        alone = self.over in ("", *GROUPS)
        return [self.own] if alone else [self.own, self._sized(self.over, 0, self.over_options)]

    def _sized(self, key: str, size: int, options: Mapping | None = None) -> Entrant:
        if self.suite != "within" or self.kind in ("speed", "faster"):
            return Entrant(key, key, options or None)
        cls = drafters().get(key)
        if cls is None or cls.size_option is None:
            return Entrant(key, key)
        size = size or cls.usual_size
        return Entrant(f"{key} of {size}", key, {cls.size_option: size})

    def _what(self, rivals: Sequence[str]) -> str:
        own = " or ".join((self.own.name, *self.also))
        rival = GROUPS.get(self.over, "") or next(iter(rivals), self.over)
        where = f", {', '.join(self.workloads)}" if self.workloads else ""
        return {
            "speed": f"{own} / {rival}{where}",
            "step": f"{own}, tokens a step{where}",
            "longer": f"{own} - {rival}, tokens a step{where}",
            "faster": f"{own} faster than {rival}, workloads{where}",
        }[self.kind]


def aims(suite: str) -> list[Aim]:
    """The goals that the cards of all methods set for this suite. Raises UserError if a goal has an unknown field or
    kind."""
    goals_of_cards, names = [], {aim.name for aim in fields(Aim)} - {"of"}
    for key, folder in folders().items():
        card = tomllib.loads((folder / "card.toml").read_text("utf-8"))
        for entry in card.get("goals", []):
            if not {"suite"} <= entry.keys() <= names or entry.get("kind", "speed") not in FIGURES:
                raise UserError(f"The card of {key} has a goal that cannot be read: {entry}.")
            lists = {name: tuple(entry.get(name, ())) for name in ("workloads", "also")}
            goals_of_cards.append(Aim(key, **{**entry, **lists}))
    return [aim for aim in goals_of_cards if aim.suite == suite]


def goals(table: Sequence[Row], verify_ratio: float | None) -> list[Goal]:
    """The goals of the suite ``peers``. verify_ratio: the time of a pass over the root and 8 nodes, divided by the time
    of a one-token step."""
    base = plain().key
    best = best_of(table, [name for name in group(table, "ours") if name != base])
    ratios = [row.to_none for row in best.values()]
    gain = geometric_mean(ratios) if ratios and None not in ratios else None
    return [
        *(aim.goal(table) for aim in aims("peers")),
        Goal("8-node verify / one-token step", 1.6, 1.35, verify_ratio, at_most=True),
        Goal(f"best drafter / {base}", 2.0, 3.0, gain),
    ]


def goals_beside_openvino(
    table: Sequence[Row], one_row: float | None, steady: Mapping[str, float]
) -> list[Goal]:
    """The goals of the comparison with OpenVINO GenAI, whose contestants have the groups ``plain``, ``assisted`` and
    ``lookup``.

    one_row: the time of a pass over one row, divided by the time that reading the weights once takes. steady: for each
    drafter, the time of a step beside two busy processes, divided by the time of a step on a quiet machine.
    """
    ours = [of(table, name) for name in group(table, "ours") if name != plain().key]
    theirs = [of(table, name) for kind in ("assisted", "lookup") for name in group(table, kind)]
    best = max((speed(own, theirs) for own in ours), default=None) if theirs else None
    return [
        *(aim.goal(table) for aim in aims("openvino")),
        Goal("best drafter / openvino's best speculation", 1.1, 1.5, best),
        Goal("one-row pass / reading the weights", 1.5, 1.15, one_row, at_most=True),
        *(
            Goal(f"step beside two busy processes, {name}", 3, 2, ratio, at_most=True)
            for name, ratio in steady.items()
        ),
    ]


Rows = Mapping[str, Row]
"""The rows of one contestant, by workload."""


def group(table: Sequence[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row.contestant for row in table if row.group == name))


def of(table: Sequence[Row], contestant: str) -> Rows:
    return {row.workload: row for row in table if row.contestant == contestant}


def ratios(own: Rows, other: Rows) -> list[float]:
    return [row.tokens_per_second / other[place].tokens_per_second for place, row in own.items()]


def speed(own: Rows, others: Sequence[Rows]) -> float:
    """Tokens per second divided by those of the fastest other contestant, as a geometric mean over the workloads."""
    return min(geometric_mean(ratios(own, rival)) for rival in others)


def step(own: Rows, others: Sequence[Rows] = ()) -> float:
    """Tokens per step, over all texts. others: not used."""
    calls = sum(row.calls for row in own.values())
    return sum(row.mean_accepted * row.calls for row in own.values()) / calls


def longer(own: Rows, others: Sequence[Rows]) -> float:
    return step(own) - max(map(step, others))


def faster(own: Rows, others: Sequence[Rows]) -> float:
    """The number of workloads on which the contestant is faster than every other contestant."""
    return float(
        sum(map(all, zip(*([r > 1 for r in ratios(own, rival)] for rival in others), strict=True)))
    )


FIGURES: Mapping[str, Callable[[Rows, Sequence[Rows]], float]] = {
    "speed": speed,
    "step": step,
    "longer": longer,
    "faster": faster,
}
