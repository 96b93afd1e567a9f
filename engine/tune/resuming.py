"""Resumes a stopped tuning: takes the measurements from the lines of its record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.core.drafter import Drafter
from engine.errors import UserError
from engine.tune.candidates import ALL, Candidate, Key
from engine.tune.cost_table import CostTable
from engine.tune.kept_counts import Counts
from engine.tune.speed_prediction import Speed


@dataclass
class Measured:
    """The measurements of a tuning so far. candidates: key -> candidate, with its counts. checked: (key, number of
    texts) -> speed in a run beside plain decoding."""

    candidates: dict[Key, Candidate] = field(default_factory=dict)
    checked: dict[tuple[Key, int], Speed] = field(default_factory=dict)

    def known(self, candidate: Candidate) -> Candidate:
        """The candidate that is stored under this candidate's key; if there is none, store this one and return it."""
        return self.candidates.setdefault(candidate.key, candidate)


def resumed(
    lines: Iterable[Mapping], classes: Mapping[str, type[Drafter]], costs: CostTable, name: str
) -> Measured:
    """The measurements in the lines of a record. classes: key -> drafter; lines of other drafters are skipped. costs:
    the table to which the ``cost`` lines are added. name: the record's file name, for messages. Raises UserError if a
    line is not one of a tuning."""
    measured = Measured()
    kinds: dict[Key, dict[str, Counts]] = defaultdict(dict)
    try:
        for line in lines:
            if line["kind"] == "cost":
                costs.add(line)
            elif line["kind"] in ("acceptance", "setting") and line["drafter"] in classes:
                candidate = Candidate(
                    classes[line["drafter"]], int(line["size"]), str(line["verifier"])
                )
                if line["kind"] == "setting":
                    _take_speed(measured, candidate, line)
                    continue
                kinds[candidate.key][str(line["prompt_kind"])] = Counts.of_line(line)
                if (
                    line["prompt_kind"] == ALL
                ):  # the last of its group: without it the others do not count
                    candidate = measured.known(candidate)
                    candidate.counts = kinds.pop(candidate.key)
                    beside = line["plain"]
                    candidate.beside = int(beside["new_tokens"]), float(beside["milliseconds"])
                    candidate.wrote(int(line["prompts"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"{name} is no record of a tuning; name another file.") from None
    return measured


def _take_speed(measured: Measured, candidate: Candidate, line: Mapping) -> None:
    if line["checked"] is not None:
        speed = Speed(*(float(line[name]) for name in ("predicted", "plain", "checked")))
        measured.checked[candidate.key, int(line["texts"])] = speed
