"""Resumes a tuning that was stopped: reads the measurements in its record."""

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
    """candidates: by key. checked: speeds of runs beside plain decoding, by key and number of texts."""

    candidates: dict[Key, Candidate] = field(default_factory=dict)
    checked: dict[tuple[Key, int], Speed] = field(default_factory=dict)

    def known(self, candidate: Candidate) -> Candidate:
        """The candidate recorded under this key; if there is none, record the candidate passed in."""
        return self.candidates.setdefault(candidate.key, candidate)


def resumed(
    lines: Iterable[Mapping], classes: Mapping[str, type[Drafter]], costs: CostTable, name: str
) -> Measured:
    """The measurements in the lines of a record. classes: drafters by key; lines of other drafters are skipped. costs: receives the
    ``cost`` lines. name: the name of the record. Raises UserError if a line is not a tuning's."""
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
