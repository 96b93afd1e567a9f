"""Finds the step of a run that a lesson shows by the event in it, so that a new run needs no new step number.

Each function for a moment returns the nodes of a step that show it, or [].
"""

from collections.abc import Callable

from engine.errors import UserError
from engine.trace import Trace
from presets.figures import kept, refused
from presets.method_figures import unwanted


def _second_guess(step: dict) -> list[int]:
    """Return the accepted nodes of which an earlier sibling was rejected."""
    parents, lost = step["nodes"]["parent"], refused(step)
    return [
        node
        for node in kept(step)
        if any(parents[node] == parents[other] and other < node for other in lost)
    ]


def _second_sibling(step: dict) -> list[int]:
    """Return the accepted nodes that were judged second among their siblings, and have an accepted child."""
    parents, lost, alive = step["nodes"]["parent"], refused(step), kept(step)
    going_on = {parents[node] for node in alive}
    return [
        node
        for node in _second_guess(step)
        if node in going_on and sum(parents[sibling] == parents[node] for sibling in lost) == 1
    ]


def _all_thrown(step: dict) -> list[int]:
    """Return the rejected nodes with children, which are thrown away, if the step accepted no token."""
    return [] if kept(step) else [node for node in refused(step) if node in step["nodes"]["parent"]]


def _among_siblings(step: dict) -> list[int]:
    """Return the one accepted node of a draft that has several nodes, all of depth 1."""
    alive, depths = kept(step), step["nodes"]["depth"]
    return alive if len(alive) == 1 and len(depths) > 1 and max(depths) == 1 else []


def _first_refused(step: dict) -> list[int]:
    """Return the nodes that a coin rejected and that were judged before all their siblings."""
    parents = step["nodes"]["parent"]
    order = [parents[entry["node"]] for entry in step["judgements"]]
    nodes = [entry["node"] for entry in step["judgements"]]
    return [
        node for node in _decided(step, False) if order.index(parents[node]) == nodes.index(node)
    ]


def _shared_beginning(step: dict) -> list[int]:
    """Return the nodes with several children: two continuations began with this token."""
    parents = step["nodes"]["parent"]
    return [node for node in range(len(parents)) if parents.count(node) > 1]


def _skipped(step: dict) -> list[int]:
    """Return the accepted nodes of a step whose drafter left out whole layers."""
    stacks = [one["layers"] for one in _exhibits(step, "layers")]
    return kept(step) if any(one["state"] == "skipped" for s in stacks for one in s) else []


def _exhibits(step: dict, kind: str) -> list[dict]:
    return [
        exhibit
        for exhibit in (step.get("drafter") or {}).get("exhibits", ())
        if exhibit["kind"] == kind
    ]


def _gap(step: dict) -> float:
    """Return how far a gauge of the step stands below its mark, at most; 0 if no gauge has a mark."""
    marked = [gauge for gauge in _exhibits(step, "gauge") if gauge.get("mark") is not None]
    return max((gauge["mark"] - gauge["value"] for gauge in marked), default=0.0)


def _thrown(step: dict) -> list[int]:
    """Return the rejected nodes with children, which are thrown away, if the step accepted a token."""
    parents = step["nodes"]["parent"]
    return [node for node in refused(step) if node in parents and kept(step)]


def _decided(step: dict, kept_by_it: bool) -> list[int]:
    """Return the nodes that a coin accepted (``kept_by_it``) or rejected, with a probability between 0 and 1."""
    return [
        entry["node"]
        for entry in step["judgements"]
        if entry["coin"] is not None
        and 0 < entry["accept"] < 1
        and (entry["coin"] < entry["accept"]) == kept_by_it
    ]


def _same_word(step: dict) -> list[int]:
    """Return the rejected nodes that repeat the token of their parent."""
    nodes, parents = step["nodes"]["token"], step["nodes"]["parent"]
    return [one for one in refused(step) if parents[one] >= 0 and nodes[one] == nodes[parents[one]]]


def _whole(step: dict) -> list[int]:
    depths = step["nodes"]["depth"]
    return kept(step) if len(depths) > 2 and len(kept(step)) == max(depths) else []


MOMENTS: dict[str, Callable[[dict], list[int]]] = {
    "first draft": lambda step: list(range(len(step["nodes"]["token"]))),
    "second guess": _second_guess,
    "second sibling": _second_sibling,
    "thrown": _thrown,
    "all thrown": _all_thrown,
    "whole draft": _whole,
    "nothing kept": lambda step: [] if kept(step) else refused(step),
    "coin kept": lambda step: _decided(step, True),
    "coin refused": lambda step: _decided(step, False),
    "first guess refused": _first_refused,
    "one of several": _among_siblings,
    "shared beginning": _shared_beginning,
    "layers left out": _skipped,
    "far below the bound": lambda step: kept(step) or refused(step) if _gap(step) > 0 else [],
    "same word twice": _same_word,
    "unwanted kept": lambda step: [node for node in kept(step) if unwanted(step, node)],
    "five kept": lambda step: kept(step) if len(kept(step)) >= 5 else [],
}
"""Name of a moment -> function that returns the nodes of a step that show it, or []."""
OF_ALL = ("first draft", "whole draft", "five kept", "layers left out", "far below the bound")
"""Moments that concern a whole step, not a single token."""
GREATEST: dict[str, Callable[[dict], float]] = {
    "layers left out": lambda step: len(kept(step)),
    "far below the bound": _gap,
}
"""Moment -> value of a step. The step with the greatest value is shown, not the step with the smallest draft."""


def moment(name: str, trace: Trace) -> tuple[int, int | None]:
    """Return the index of the step that shows this moment, and the node that is its point, or None.

    Of several steps, the step with the smallest draft is taken, because it is easiest to see. For "first draft" it is
    the first step, for "longest" and "layers left out" the step with most accepted tokens, and for "far below the
    bound" the step whose gauge is farthest below its mark. Raises UserError for an unknown moment, or if no step shows
    it.
    """
    if name == "longest":
        return max(range(len(trace.steps)), key=lambda at: len(kept(trace.steps[at]))), None
    if name not in MOMENTS:
        known = ", ".join([*MOMENTS, "longest"])
        raise UserError(f"There is no moment {name!r}; known are: {known}.")
    shown = {at: MOMENTS[name](step) for at, step in enumerate(trace.steps)}
    fit = [at for at, nodes in shown.items() if nodes]
    if not fit:
        raise UserError(f"No step of this run is a moment “{name}”.")
    if name == "first draft":
        return fit[0], None
    if name in GREATEST:
        return max(fit, key=lambda at: GREATEST[name](trace.steps[at])), None
    best = min(fit, key=lambda at: len(trace.steps[at]["nodes"]["token"]))
    return best, None if name in OF_ALL else shown[best][0]
