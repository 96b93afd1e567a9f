"""Whether each "look for" is true of its finished trace: conditions on figures of the trace.

A condition is written as ``FIGURE COMPARISON WORTH``, for instance ``forks_saved >= 2``. FIGURE is a name in ``KNOWN``;
in a race the lane stands before it, ``chain.tokens_a_step``. WORTH is a number or such a figure; ``of NAME`` follows a
figure of another example.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from engine.errors import UserError
from engine.trace import Trace, read_trace
from presets import cards, presets, race_traces, races, trace_text
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


def holds(condition: str, name: str, traces: Mapping[str, Trace] | None = None) -> bool:
    """Whether the condition is true of the finished trace, or race, of this example, or of other traces of it.

    traces: by lane, as ``finished`` gives them. Raises UserError where the condition cannot be read, or names something that does not exist.
    """
    found = CONDITION.fullmatch(condition)
    if found is None:
        raise UserError(f"The condition {condition!r} of {name} cannot be read.")
    left, right = found["left"], found["right"]
    worth = _number(right)
    if worth is None:
        worth = figure(right, found["of"]) if found["of"] else figure(right, name, traces)
    return COMPARISONS[found["sign"]](figure(left, name, traces), worth)


def figure(asked: str, name: str, traces: Mapping[str, Trace] | None = None) -> float:
    """The value of a figure, ``NAME`` or ``LANE.NAME``, of this example's finished trace or race, or of these traces."""
    lane, _, wanted = asked.rpartition(".")
    traces = traces or finished(name)
    if lane not in traces or wanted not in KNOWN:
        raise UserError(f"There is no figure {asked!r} of {name}.")
    return KNOWN[wanted](traces[lane])


@cache
def finished(name: str) -> Mapping[str, Trace]:
    """The finished traces of an example by lane; a single run's lane is ""."""
    if any(race.name == name for race in races()):
        return {lane: read_trace(text) for lane, text in race_traces(name).items()}
    return {"": read_trace(trace_text(name))}


def claims() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every text that says what to look for: its owner, the example that shows it, its conditions."""
    for example in (*presets(), *races()):
        yield example.name, example.name, example.holds
    for card in cards().values():
        if card.example:
            yield f"the card {card.key}", card.example, card.holds


def untrue() -> Iterator[str]:
    """One line for each condition that does not hold, and for each claim that has none."""
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
