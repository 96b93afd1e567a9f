"""Whether each "look for" is true of its finished trace: conditions on figures of the trace.

A condition is written as ``FIGURE COMPARISON WORTH``, for instance ``forks_saved >= 2``. FIGURE is a
name in ``FIGURES``; in a race it stands behind the lane, ``chain.tokens_a_step``. WORTH is a number,
or such a figure, with ``of NAME`` behind it where it is another example's.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping

from engine.errors import UserError
from engine.trace import Trace, read_trace
from presets import Preset, RacePreset, cards, presets, race_files, races, trace_file
from presets.figures import FIGURES

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


def holds(condition: str, name: str) -> bool:
    """Whether the condition is true of the finished trace, or race, of this example.

    Raises UserError where the condition cannot be read, or names what there is not.
    """
    found = CONDITION.fullmatch(condition)
    if found is None:
        raise UserError(f"The condition {condition!r} of {name} cannot be read.")
    left, right = found["left"], found["right"]
    worth = _number(right)
    if worth is None:
        worth = figure(right, found["of"] or name)
    return COMPARISONS[found["sign"]](figure(left, name), worth)


def figure(asked: str, name: str) -> float:
    """The value of a figure, ``NAME`` or ``LANE.NAME``, of this example's finished trace or race."""
    lane, _, wanted = asked.rpartition(".")
    traces = finished(name)
    if lane not in traces or wanted not in FIGURES:
        raise UserError(f"There is no figure {asked!r} of {name}.")
    return FIGURES[wanted](traces[lane])


def finished(name: str) -> Mapping[str, Trace]:
    """The finished traces of an example by lane; a single run's lane is ""."""
    if any(race.name == name for race in races()):
        return {
            lane: read_trace(path.read_text("utf-8")) for lane, path in race_files(name).items()
        }
    return {"": read_trace(trace_file(name).read_text("utf-8"))}


def untrue() -> Iterator[str]:
    """One line for each condition that does not hold, and for each example that has none."""
    for example in examples_with_claims():
        if not example.holds:
            yield f"{example.name}: no condition holds its “look for”"
        for condition in example.holds:
            if not holds(condition, example.name):
                yield f"{example.name}: not true: {condition}"


def examples_with_claims() -> Iterator[Preset | RacePreset]:
    """Everything that tells what to look for: the listed examples, and those of the method cards."""
    yield from presets()
    yield from races()
    yield from (card.own_example for card in cards().values() if card.own_example)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
