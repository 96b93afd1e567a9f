"""The ``acceptance`` line that an importer makes. Fields that the source does not give are left out."""

from __future__ import annotations

from engine.bridges.step_counts import StepCounts


def imported_line(engine: str, name: str, lacks: str = "", **known: object) -> dict:
    """An ``acceptance`` line. engine: the engine that measured it. name: the name of the file. lacks: a sentence on
    data that the source does not give; "" if it gives all. known: further fields of the line; a field that is None is
    left out."""
    source = {"engine": engine, "name": name} | ({"lacks": lacks} if lacks else {})
    fields = {key: value for key, value in known.items() if value is not None}
    return {"kind": "acceptance", "source": source, "prompt_kind": "all", **fields}


def counted(counts: StepCounts) -> dict:
    """The fields of an ``acceptance`` line that can be computed from counts of steps."""
    return {
        "positions": counts.positions(),
        "steps": counts.total,
        "drafted": counts.drafted,
        "accepted": counts.accepted,
    }
