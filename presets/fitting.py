"""Which prompts of an example's workload would make its "look for" true: to choose another one after the models have
changed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.errors import UserError, unknown
from engine.run import RunRequest, open_run
from engine.trace import Trace, read_trace
from presets import RacePreset, cards, examples, races
from presets.conditions import holds
from presets.listed import KINDS, Preset, prompts
from presets.recording import lane_requests, request_of


def fitting(name: str, kind: str = "") -> Iterator[tuple[str, list[str]]]:
    """The id of each prompt, and the example's conditions that its run or race does not meet.

    kind: the workload of the prompts; "" for the example's own. Raises UserError for an unknown example, and for a
    workload without prompts.
    """
    known = {**examples(), **{race.name: race for race in races()}}
    if name not in known:
        raise unknown("example", name, known)
    example = known[name]
    kind = kind or example.kind
    if kind not in KINDS:
        raise UserError(f"There is no workload {kind!r}; known are: {', '.join(KINDS)}.")
    conditions = conditions_of(name, example)
    for entry in prompts(kind):
        traces = runs(replace(example, prompt=entry["prompt"]))
        yield entry["id"], [one for one in conditions if not holds(one, name, traces)]


def conditions_of(name: str, example: Preset | RacePreset) -> list[str]:
    """The conditions of the example, and of all cards that show it."""
    shown = (card.holds for card in cards().values() if card.example == name)
    return list(dict.fromkeys([*example.holds, *(one for some in shown for one in some)]))


def runs(example: Preset | RacePreset) -> Mapping[str, Trace]:
    """The traces of the example by lane, run now; a single run's lane is ""."""
    if isinstance(example, Preset):
        return {"": _run(request_of(example))}
    return {name: _run(request) for name, request in lane_requests(example)}


def _run(request: RunRequest) -> Trace:
    run = open_run(request)
    return read_trace("".join([run.header(), *run.steps(), run.summary()]))
