"""Checks whether each "look for" is true of its finished trace, by conditions on figures of the trace.

A condition is written as ``FIGURE COMPARISON WORTH``, for instance ``forks_saved >= 2``. FIGURE is a name in ``KNOWN``;
in a race the lane stands before it, as in ``chain.tokens_a_step``. WORTH is a number or a figure; after a figure of
another example stands ``of NAME``.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from engine.errors import UserError
from engine.trace import Trace, read_trace
from presets import cards, presets, race_traces, races, trace_file, trace_text
from presets.figures import FIGURES
from presets.method_figures import METHOD_FIGURES

KNOWN = {**FIGURES, **METHOD_FIGURES}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
CONDITION = re.compile(
    r"(?P<left>[\w.-]+) (?P<sign>>=|<=|>|<|==) (?P<right>[\w.-]+)( of (?P<of>[\w-]+))?"
)


class Missing(UserError):
    """The error for an example, a race or a card that a text names and that is not here. Its method may have been
    removed."""


def holds(condition: str, name: str, traces: Mapping[str, Trace] | None = None) -> bool:
    """Return whether the condition is true of this example's finished trace or race.

    traces: lane -> other traces of the example to use instead; see ``finished``. Raises UserError for a condition that
    cannot be read, or names something that does not exist.
    """
    parsed = CONDITION.fullmatch(condition)
    if parsed is None:
        raise UserError(f"The condition {condition!r} of {name} cannot be read.")
    left, right = parsed["left"], parsed["right"]
    worth = _number(right)
    if worth is None:
        worth = figure(right, parsed["of"]) if parsed["of"] else figure(right, name, traces)
    return COMPARISONS[parsed["sign"]](figure(left, name, traces), worth)


def figure(asked: str, name: str, traces: Mapping[str, Trace] | None = None) -> float:
    """Return the value of a figure of this example's finished trace or race. asked: ``NAME`` or ``LANE.NAME``. traces:
    as for ``holds``. Raises UserError for an unknown figure."""
    lane, _, field = asked.rpartition(".")
    traces = traces or finished(name)
    if lane not in traces or field not in KNOWN:
        raise UserError(f"There is no figure {asked!r} of {name}.")
    return KNOWN[field](traces[lane])


@cache
def finished(name: str) -> Mapping[str, Trace]:
    """Return lane -> finished trace of an example or race; the lane of a single run is "". Raises Missing if an example
    has no finished trace."""
    if any(race.name == name for race in races()):
        return {lane: read_trace(text) for lane, text in race_traces(name).items()}
    if not trace_file(name).exists():
        raise Missing(f"There is no finished run of {name!r}.")
    return {"": read_trace(trace_text(name))}


def claims() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (owner, name of the example that shows it, conditions) for every text that says what to look for."""
    for example in (*presets(), *races()):
        yield example.name, example.name, example.holds
    for card in cards().values():
        if card.example:
            yield f"the card {card.key}", card.example, card.holds


def untrue() -> Iterator[str]:
    """Yield one line for each condition that does not hold, and for each "look for" without a condition."""
    for whose, name, conditions in claims():
        if not conditions:
            yield f"{whose}: no condition holds its “look for”"
        for condition in conditions:
            if not holds(condition, name):
                yield f"{whose}: not true: {condition}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
