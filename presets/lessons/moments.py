"""The step of a run that a lesson shows, by what happens in it, so that a run that is made anew needs no new number."""

from collections.abc import Callable

from engine.errors import UserError
from engine.trace import Trace
from presets.figures import kept, refused
from presets.method_figures import unwanted


def _second_guess(step: dict) -> bool:
    """A token is kept although a sibling drafted before it was refused."""
    parents = step["nodes"]["parent"]
    return any(
        parents[node] == parents[other] and other < node
        for node in kept(step)
        for other in refused(step)
    )


def _thrown(step: dict) -> bool:
    """Tokens below a refused one are thrown away, after at least one was kept."""
    gone = set(refused(step))
    return bool(kept(step)) and any(parent in gone for parent in step["nodes"]["parent"])


def _whole(step: dict) -> bool:
    depths = step["nodes"]["depth"]
    return len(depths) > 2 and len(kept(step)) == max(depths)


def _coin(step: dict, kept_by_it: bool) -> bool:
    return any(
        entry["coin"] is not None
        and 0 < entry["accept"] < 1
        and (entry["coin"] < entry["accept"]) == kept_by_it
        for entry in step["judgements"]
    )


def _doubled(step: dict) -> bool:
    """A refused token is the same as the one before it."""
    nodes = step["nodes"]
    return any(
        nodes["parent"][node] >= 0 and nodes["token"][node] == nodes["token"][nodes["parent"][node]]
        for node in refused(step)
    )


MOMENTS: dict[str, Callable[[dict], bool]] = {
    "first draft": lambda step: bool(step["nodes"]["token"]),
    "second guess": _second_guess,
    "thrown": _thrown,
    "whole draft": _whole,
    "nothing kept": lambda step: bool(step["nodes"]["token"]) and not kept(step),
    "coin kept": lambda step: _coin(step, True),
    "coin refused": lambda step: _coin(step, False),
    "same word twice": _doubled,
    "unwanted kept": lambda step: any(unwanted(step, node) for node in kept(step)),
    "five kept": lambda step: len(kept(step)) >= 5,
}


def moment(name: str, trace: Trace) -> int:
    """The index of the first step of which this is true; of "longest", the one that keeps most.

    Raises UserError where there is no such moment, or no such step.
    """
    if name == "longest":
        return max(range(len(trace.steps)), key=lambda index: len(kept(trace.steps[index])))
    if name not in MOMENTS:
        known = ", ".join([*MOMENTS, "longest"])
        raise UserError(f"There is no moment {name!r}; known are: {known}.")
    for index, step in enumerate(trace.steps):
        if MOMENTS[name](step):
            return index
    raise UserError(f"No step of this run is a moment “{name}”.")
