"""The content that the page offers: embedded models, prompts, presets, method cards and finished traces."""

from functools import cache
from pathlib import Path

from engine.errors import LISTED, unknown
from presets.families import asked, families, family, models
from presets.finished import told_anew, trace_file, unpacked
from presets.listed import (
    HERE,
    KINDS,
    TURNS,
    Preset,
    RacePreset,
    lane_names,
    presets,
    prompts,
    races,
)
from presets.methods import cards, methods, outside_cards, scaling

__all__ = [
    "HERE",
    "KINDS",
    "TURNS",
    "Preset",
    "RacePreset",
    "asked",
    "cards",
    "families",
    "family",
    "lane_names",
    "methods",
    "models",
    "outside_cards",
    "presets",
]
__all__ += ["prompts", "races", "scaling", "trace_file"]


@cache
def examples() -> dict[str, Preset]:
    """Return every example of Watch by name: the listed examples, then the own examples of method cards."""
    own = [card.own_example for card in cards().values() if card.own_example]
    return {example.name: example for example in (*presets(), *own)}


def preset(name: str) -> Preset:
    """Return the example of this name. Raises UserError, which lists the known names."""
    by_name = examples()
    if name not in by_name:
        raise unknown("preset", name, by_name, LISTED)
    return by_name[name]


def trace_names() -> list[str]:
    """Return the names of the examples that have a finished trace."""
    return [name for name in examples() if trace_file(name).exists()]


def trace_text(name: str) -> str:
    """Return the text of an example's finished trace."""
    return told_anew(unpacked(trace_file(name)))


def opening_example() -> str:
    """Return the name of the example whose trace is on the screen when the page opens."""
    first, names = presets()[0].name, trace_names()
    return first if first in names else names[0]


def race_file(race: str, lane: str) -> Path:
    """Return the file of the finished trace of one lane of this race, whether it exists or not."""
    return HERE / "traces" / "race" / race / f"{lane}.ndjson.gz"


def race_traces(race: str) -> dict[str, str]:
    """Return lane -> text of its finished trace, in the order of the race's lanes; {} unless all lanes have one."""
    lanes = next(candidate.lanes for candidate in races() if candidate.name == race)
    files = {lane.name: race_file(race, lane.name) for lane in lanes}
    if not all(path.exists() for path in files.values()):
        return {}
    return {lane: told_anew(unpacked(path)) for lane, path in files.items()}
