"""Reads and writes races: several runs of one prompt in one file, each line tagged with its lane."""

import json
import re
from collections.abc import Mapping

from engine.errors import UserError
from engine.trace import MAX_BYTES, Trace, read_trace, to_line

LANE = re.compile(r"[A-Za-z0-9_-]{1,40}")
MOST = 8
"""The most lanes that a file may hold."""


def tagged(lane: str, line: str) -> str:
    """Return a trace line tagged with its lane; an empty line stays empty. lane: must match LANE."""
    return line and f'{{"lane":"{lane}",{line[1:]}'


def titles(runs: Mapping[str, Mapping]) -> dict[str, str]:
    """Return lane -> displayed name: its drafter; lanes with the same drafter also name the options that differ,
    as in "Chain, length 4". runs: lane -> run line."""
    named = {}
    for name, run in runs.items():
        drafter = run["drafter"]
        title = drafter.get("title") or drafter["key"]
        twins = [other for other in runs.values() if other["drafter"]["key"] == drafter["key"]]
        differs = [
            option
            for option, value in _settings(drafter).items()
            if any(_settings(twin["drafter"]).get(option) != value for twin in twins)
        ]
        details = [
            _named(_label(drafter, option), _short(_settings(drafter)[option]))
            for option in differs
        ]
        if any(twin["verifier"]["key"] != run["verifier"]["key"] for twin in twins):
            details.append(f"rule {run['verifier'].get('title') or run['verifier']['key']}")
        alone = len(twins) == 1 or details
        named[name] = ", ".join([title, *details]) if alone else f"{title} ({name})"
    return named


def _settings(drafter: Mapping) -> dict:
    """Return a drafter's options, and its parts by role, in one dictionary."""
    return {**drafter["options"], **drafter.get("parts", {})}


def _label(drafter: Mapping, option: str) -> str:
    """Return the label of an option. Old traces have no labels, and call the most nodes of a tree its budget."""
    usual = "nodes" if option == "budget" else option.replace("_", " ")
    return drafter.get("labels", {}).get(option) or usual


def _named(label: str, value: object) -> str:
    """Return a value with its label, as in "length 4". A part like "draft-3m" needs no label: its name begins with
    it."""
    return str(value) if str(value).startswith(label) else f"{label} {value}"


def _short(value: object) -> object:
    """Return a value as the page's script writes it: 0.0 as 0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def joined(traces: Mapping[str, str]) -> str:
    """Return the tagged lines of a race, one lane after the other. traces: lane -> NDJSON."""
    return "".join(
        tagged(name, f"{line}\n")
        for name, own in traces.items()
        for line in own.split("\n")
        if line
    )


def split(text: str) -> dict[str, str]:
    """Return lane -> NDJSON for tagged lines that ``joined`` wrote: the inverse of ``joined``."""
    traces: dict[str, str] = {}
    for line in text.split("\n"):
        head, _, rest = line.partition(",")
        if rest:
            lane = head.removeprefix('{"lane":"').removesuffix('"')
            traces[lane] = traces.get(lane, "") + "{" + rest + "\n"
    return traces


def is_race(text: str) -> bool:
    """Return whether the first line names a lane, as in a race."""
    try:
        first = json.loads(text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "lane" in first


def read_race(text: str, most: int = MOST) -> dict[str, Trace]:
    """Return the lanes of an untrusted race, by name, in the order of the file.

    Raises UserError, one sentence, unless there are two to ``most`` lanes, each a whole trace,
    all with the same prompt, target and sampling.
    """
    if len(text) > MAX_BYTES:
        raise UserError(f"This is larger than a race may be ({MAX_BYTES >> 20} MB).")
    lines: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            lane, own = _untagged(number, line)
            lines.setdefault(lane, []).append(own)
            if len(lines) > most:
                raise UserError(f"A race has two to {most} lanes; this file holds more.")
    if len(lines) < 2:
        raise UserError(f"A race has two to {most} lanes; this file holds {len(lines)}.")
    traces = {lane: _read_lane(lane, "".join(own)) for lane, own in lines.items()}
    _check_alike(traces)
    return traces


def _untagged(number: int, line: str) -> tuple[str, str]:
    try:
        entry = json.loads(line)
        lane = entry.pop("lane")
        own = to_line(entry)
    except (ValueError, RecursionError):
        raise UserError(f"Line {number} of the race is not valid JSON; is it cut off?") from None
    except (AttributeError, TypeError, KeyError):
        raise UserError(f"Line {number} of the race does not say its lane.") from None
    if not isinstance(lane, str) or not LANE.fullmatch(lane):
        raise UserError(
            f"Line {number} of the race names a lane in a way that is not known: "
            "a name has at most 40 letters, digits, _ and -."
        )
    return lane, own


def _read_lane(lane: str, text: str) -> Trace:
    try:
        return read_trace(text)
    except UserError as error:
        raise UserError(f"Lane {lane} of the race: {error}") from None


def _check_alike(traces: Mapping[str, Trace]) -> None:
    first, *others = (trace.run for trace in traces.values())
    for part in ("prompt", "target", "sampling"):
        if any(run[part] != first[part] for run in others):
            raise UserError(f"This is no race: the {part} is not the same in all lanes.")
