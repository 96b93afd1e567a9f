"""Counts how many drafted tokens are accepted, from the steps of texts that a candidate has written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.core.step import STAGES, Step
from engine.trace.recording import Totals

LONGEST = 2.0
"""A step's time counts up to this multiple of the ninth decile of all step times; see ``steady_sum``."""


@dataclass
class Counts:
    """Counts of drafted and accepted tokens over some texts.

    drafted: the number of drafted nodes. draft_passes: the number of passes of the draft model. positions: for each
    position in the draft, [reached, accepted]. A step counts as reached if it drafted a token at the position and all
    drafted tokens before it were accepted. lengths: lengths[n] is the number of steps that drafted n nodes.
    milliseconds: stage -> the sum of its times over all steps, without the pass over the prompt.
    """

    steps: int = 0
    new_tokens: int = 0
    drafted: int = 0
    draft_passes: int = 0
    positions: list[list[int]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    @classmethod
    def of_line(cls, line: Mapping) -> Counts:
        """The counts in an ``acceptance`` line. Raises KeyError, TypeError or ValueError for any other line."""
        positions = [[int(place["reached"]), int(place["accepted"])] for place in line["positions"]]
        spent = {stage: float(line["milliseconds"][stage]) for stage in STAGES}
        counts = (int(line[name]) for name in ("steps", "new_tokens", "drafted", "draft_passes"))
        return cls(*counts, positions, [int(steps) for steps in line["lengths"]], spent)

    def to_dict(self) -> dict:
        """The counts as fields of an ``acceptance`` line."""
        positions = [
            {"position": place, "reached": reached, "accepted": accepted}
            for place, (reached, accepted) in enumerate(self.positions, 1)
        ]
        spent = {stage: round(value, 3) for stage, value in self.milliseconds.items()}
        return {
            "positions": positions,
            "steps": self.steps,
            "new_tokens": self.new_tokens,
            "drafted": self.drafted,
            "draft_passes": self.draft_passes,
            "lengths": [*self.lengths],
            "milliseconds": spent | {"total": round(sum(spent.values()), 3)},
        }

    def add(self, other: Counts) -> None:
        self.steps += other.steps
        self.new_tokens += other.new_tokens
        self.drafted += other.drafted
        self.draft_passes += other.draft_passes
        self.lengths += [0] * (len(other.lengths) - len(self.lengths))
        for place, steps in enumerate(other.lengths):
            self.lengths[place] += steps
        self.positions += [[0, 0] for _ in other.positions[len(self.positions) :]]
        for own, more in zip(self.positions, other.positions, strict=False):
            own[0] += more[0]
            own[1] += more[1]
        for stage, spent in other.milliseconds.items():
            self.milliseconds[stage] += spent

    @property
    def spent(self) -> float:
        """Milliseconds of all stages and steps."""
        return sum(self.milliseconds.values())

    @property
    def tokens_a_step(self) -> float:
        return self.new_tokens / self.steps

    @property
    def drafted_a_step(self) -> float:
        return self.drafted / self.steps

    @property
    def kept_share(self) -> float | None:
        """The share of reached positions (see ``positions``) at which the drafted token was accepted; None if nothing
        was drafted."""
        reached = sum(place[0] for place in self.positions)
        return sum(place[1] for place in self.positions) / reached if reached else None

    def usual(self, *stages: str) -> float:
        """The mean milliseconds of a step that are spent in these stages; without arguments, in all stages."""
        return sum(self.milliseconds[stage] for stage in stages or STAGES) / self.steps


def counted(steps: Iterator[Step]) -> Counts:
    """The counts of one text: takes all of its steps."""
    totals, lengths, drafted = Totals(), [], 0
    times: list[Mapping[str, float]] = []
    for step in steps:
        times.append(step.milliseconds)
        totals.add(step)
        nodes = len(step.tree) - step.tree.forced
        lengths += [0] * (nodes + 1 - len(lengths))
        lengths[nodes] += 1
        drafted += nodes
    positions = [[row["reached"], row["accepted"]] for row in totals.by_depth]
    spent = {stage: steady_sum(step.get(stage, 0.0) for step in times) for stage in STAGES}
    passes = totals.passes.get("draft", 0)
    return Counts(totals.steps, totals.new_tokens, drafted, passes, positions, lengths, spent)


def steady_sum(milliseconds: Iterable[float]) -> float:
    """The sum of the times of steps, where each step counts as at most twice the ninth decile (``LONGEST``).

    A step may wait while a graph is compiled, or while another process uses the processor. Such a step can take as
    long as all other steps of its text together, but most texts have none, so it must not decide the sum.
    """
    ordered = sorted(milliseconds)
    if not ordered:
        return 0.0
    last = len(ordered) - 1
    limit = LONGEST * ordered[max(int(0.9 * last), (last + 1) // 2)]
    return sum(min(time, limit) for time in ordered)
