"""Finds the step of a run that a lesson shows by what happens in it, so that a new run needs no new step number."""

from collections.abc import Callable

from engine.errors import UserError
from engine.trace import Trace
from presets.figures import kept, refused
from presets.method_figures import unwanted


def _second_guess(step: dict) -> list[int]:
    """Kept although a sibling drafted before it was refused."""
    parents, lost = step["nodes"]["parent"], refused(step)
    return [
        node
        for node in kept(step)
        if any(parents[node] == parents[other] and other < node for other in lost)
    ]


def _thrown(step: dict) -> list[int]:
    """Refused, with tokens below it that are thrown away; something was kept before it."""
    parents = step["nodes"]["parent"]
    return [node for node in refused(step) if node in parents and kept(step)]


def _decided(step: dict, kept_by_it: bool) -> list[int]:
    """Kept, or refused, by a coin that could have gone either way."""
    return [
        entry["node"]
        for entry in step["judgements"]
        if entry["coin"] is not None
        and 0 < entry["accept"] < 1
        and (entry["coin"] < entry["accept"]) == kept_by_it
    ]


def _same_word(step: dict) -> list[int]:
    """Refused, and the same token as the one before it."""
    nodes, parents = step["nodes"]["token"], step["nodes"]["parent"]
    return [one for one in refused(step) if parents[one] >= 0 and nodes[one] == nodes[parents[one]]]


def _whole(step: dict) -> list[int]:
    depths = step["nodes"]["depth"]
    return kept(step) if len(depths) > 2 and len(kept(step)) == max(depths) else []


MOMENTS: dict[str, Callable[[dict], list[int]]] = {
    "first draft": lambda step: list(range(len(step["nodes"]["token"]))),
    "second guess": _second_guess,
    "thrown": _thrown,
    "whole draft": _whole,
    "nothing kept": lambda step: [] if kept(step) else refused(step),
    "coin kept": lambda step: _decided(step, True),
    "coin refused": lambda step: _decided(step, False),
    "same word twice": _same_word,
    "unwanted kept": lambda step: [node for node in kept(step) if unwanted(step, node)],
    "five kept": lambda step: kept(step) if len(kept(step)) >= 5 else [],
}
"""By name: the tokens that make a step such a moment; none where it is not one."""
OF_ALL = ("first draft", "whole draft", "five kept")
"""Moments that concern a whole step, not a single token."""


def moment(name: str, trace: Trace) -> tuple[int, int | None]:
    """The index of the step that shows this moment, and the token that is its point, or None. Of several steps the one
    that drafts least is taken, because it is easy to see; for "first draft" the first one, for "longest" the one that
    keeps most.

    Raises UserError where there is no such moment, or no such step.
    """
    if name == "longest":
        return max(range(len(trace.steps)), key=lambda at: len(kept(trace.steps[at]))), None
    if name not in MOMENTS:
        known = ", ".join([*MOMENTS, "longest"])
        raise UserError(f"There is no moment {name!r}; known are: {known}.")
    found = {at: MOMENTS[name](step) for at, step in enumerate(trace.steps)}
    fit = [at for at, nodes in found.items() if nodes]
    if not fit:
        raise UserError(f"No step of this run is a moment “{name}”.")
    if name == "first draft":
        return fit[0], None
    best = min(fit, key=lambda at: len(trace.steps[at]["nodes"]["token"]))
    return best, None if name in OF_ALL else found[best][0]
