"""How many drafted tokens were kept: counted over texts that a drafter has really written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.core.step import STAGES, Step
from engine.trace.recording import Totals

LONGEST = 2.0
"""Times the ninth decile: more of a step's time does not count."""


@dataclass
class Counts:
    """Counts of drafted and accepted tokens over some texts.

    positions: [reached, accepted] by place in the draft; reached: steps in which everything before the place was kept and
    something was drafted there. drafted: nodes. draft_passes: of a draft model. lengths: steps by the number of nodes that they drafted. milliseconds: sums by
    stage, without the reading of the prompts.
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
        """The fields of an ``acceptance`` line."""
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
    def tokens_a_step(self) -> float:
        return self.new_tokens / self.steps

    @property
    def drafted_a_step(self) -> float:
        return self.drafted / self.steps

    @property
    def kept_share(self) -> float | None:
        """The share of the reached tokens that were kept; None if nothing was drafted."""
        reached = sum(place[0] for place in self.positions)
        return sum(place[1] for place in self.positions) / reached if reached else None

    def usual(self, *stages: str) -> float:
        """Milliseconds of a step, of these stages or of all."""
        return sum(self.milliseconds[stage] for stage in stages or STAGES) / self.steps


def counted(steps: Iterator[Step]) -> Counts:
    """The counts of a text that is written to its end."""
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
    """The sum of these times of steps, none of them counted as more than twice the ninth decile.

    A step that waits while a graph is made, or while another process has the processor, then counts as a long step. One such
    step may take as long as all others of its text, and comes once, not in every text.
    """
    ordered = sorted(milliseconds)
    if not ordered:
        return 0.0
    last = len(ordered) - 1
    limit = LONGEST * ordered[max(int(0.9 * last), (last + 1) // 2)]
    return sum(min(time, limit) for time in ordered)
