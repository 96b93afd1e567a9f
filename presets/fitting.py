"""Finds the prompts of a workload that make an example's "look for" true, to choose another after a change of
models."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.errors import unknown
from engine.run import RunRequest, open_run
from engine.trace import Trace, read_trace
from presets import RacePreset, cards, examples, races
from presets.conditions import holds
from presets.listed import Preset, prompts
from presets.recording import lane_requests, request_of


def fitting(name: str, kind: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield (id of a prompt, the example's conditions that its run or race does not meet) for each prompt.

    name: of an example or race. kind: the workload of the prompts; "" for the example's own. Raises UserError for an
    unknown example, and for a workload without prompts.
    """
    by_name = {**examples(), **{race.name: race for race in races()}}
    if name not in by_name:
        raise unknown("example", name, by_name)
    example = by_name[name]
    kind = kind or example.kind
    entries = prompts(kind)
    conditions = conditions_of(name, example)
    for entry in entries:
        traces = runs(replace(example, prompt=entry["prompt"]))
        yield entry["id"], [text for text in conditions if not holds(text, name, traces)]


def conditions_of(name: str, example: Preset | RacePreset) -> list[str]:
    """Return the conditions of the example, and of all method cards that show it."""
    shown = (card.holds for card in cards().values() if card.example == name)
    return list(dict.fromkeys([*example.holds, *(text for texts in shown for text in texts)]))


def runs(example: Preset | RacePreset) -> Mapping[str, Trace]:
    """Run the example now, and return lane -> trace; the lane of a single run is ""."""
    if isinstance(example, Preset):
        return {"": _run(request_of(example))}
    return {name: _run(request) for name, request in lane_requests(example)}


def _run(request: RunRequest) -> Trace:
    run = open_run(request)
    return read_trace("".join([run.header(), *run.steps(), run.summary()]))
