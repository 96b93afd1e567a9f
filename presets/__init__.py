"""What the page offers: the embedded models, prompts, presets, method cards and finished traces."""

from functools import cache
from pathlib import Path

from engine.errors import LISTED, unknown
from presets.families import asked, families, family, models
from presets.finished import trace_file, unpacked
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
    """Every example by name: the listed ones, then those that a method's card brings itself."""
    own = [card.own_example for card in cards().values() if card.own_example]
    return {example.name: example for example in (*presets(), *own)}


def preset(name: str) -> Preset:
    """The example of this name. Raises UserError that names the known ones."""
    known = examples()
    if name not in known:
        raise unknown("preset", name, known, LISTED)
    return known[name]


def trace_names() -> list[str]:
    """The examples that have a finished trace."""
    return [name for name in examples() if trace_file(name).exists()]


def trace_text(name: str) -> str:
    """The finished trace of an example."""
    return unpacked(trace_file(name))


def opening_example() -> str:
    """The example whose trace is on the screen when the page opens."""
    first, names = presets()[0].name, trace_names()
    return first if first in names else names[0]


def race_file(race: str, lane: str) -> Path:
    """Where the finished trace of a lane of this race lies, or would lie."""
    return HERE / "traces" / "race" / race / f"{lane}.ndjson.gz"


def race_traces(race: str) -> dict[str, str]:
    """The texts of a race's finished traces by lane, in the order of its lanes; {} unless all are there."""
    lanes = next(one.lanes for one in races() if one.name == race)
    files = {lane.name: race_file(race, lane.name) for lane in lanes}
    if not all(path.exists() for path in files.values()):
        return {}
    return {lane: unpacked(path) for lane, path in files.items()}
