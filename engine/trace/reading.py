"""Reads traces: NDJSON with one run line, step lines and one summary line.

A trace may come from a stranger, so each line is checked against ``schema.json``, and then for contradictions that a
schema cannot express.
"""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fastjsonschema
import orjson

from engine.errors import UserError
from engine.text_file import text_of

SCHEMA_PATH = Path(__file__).with_name("schema.json")
MAX_BYTES = 64_000_000
MAX_DEPTH, MAX_VALUES, MAX_STRING = 10, 50_000, 4_000
"""Limits for the free-form data of a drafter in one step: levels of nesting, number of values, characters of a
string."""
MOST_TOLD = 120
"""When an error message names a faulty field, it shows at most this many characters of the field's path, because the
names in it may come from a stranger."""


@dataclass(frozen=True)
class Trace:
    """A finished run as a trace: its lines as parsed JSON objects."""

    run: dict
    steps: list[dict]
    summary: dict

    def to_ndjson(self) -> str:
        steps = map(to_step_line, self.steps)
        return "".join((to_line(self.run), *steps, to_line(self.summary)))


def to_line(entry: dict) -> str:
    """The entry as one line of NDJSON. Raises ValueError for NaN or Infinity."""
    return json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def to_step_line(entry: dict) -> str:
    """A step line as one line of NDJSON, several times as fast as ``to_line``. The line must come from the recorder,
    and all its numbers must be finite."""
    return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE).decode()


def read_trace(source: str | Path) -> Trace:
    """Read a trace from a path, or from its text (a str that holds a line break).

    Raises UserError, one sentence, for a file that is missing, too large, truncated, not a trace or inconsistent.
    """
    if isinstance(source, str) and "\n" in source:
        return _parse(source)
    return _parse(read_text(Path(source)))


def read_text(path: Path) -> str:
    """The text of a trace file, unchecked. Raises UserError if the file is missing, too large or not UTF-8."""
    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path.name} is larger than a trace may be ({MAX_BYTES >> 20} MB).")
    return text_of(path)


def read_run_line(line: str) -> dict:
    """The first line of a trace as an object. Raises UserError, one sentence, if it is not a run line."""
    entry = _entry(1, line)
    if entry["kind"] != "run":
        raise UserError("This is no trace: its first line is not a run line.")
    return entry


class LineReader:
    """Checks the lines of a trace one by one, as they arrive."""

    def __init__(self) -> None:
        self._number = self._steps = self._position = self._prompt = 0
        self.over = False
        """Whether the summary line has been read."""

    def read(self, line: str) -> dict:
        """Parse and check the next line; returns it as an object. Raises UserError, one sentence, if the line is
        invalid or contradicts the earlier lines."""
        self._number += 1
        entry = _entry(self._number, line)
        first, kind = self._number == 1, entry["kind"]
        if first and kind != "run":
            raise UserError("This is no trace: its first line is not a run line.")
        if self.over or (not first and kind == "run"):
            raise UserError(
                "This is no trace: lines other than steps stand between run and summary."
            )
        take = {"run": self._begin, "step": self._step, "summary": self._end}
        take[kind](entry)
        return entry

    def _begin(self, run: dict) -> None:
        prompt = run["prompt"]
        if len(prompt["tokens"]) != len(prompt["pieces"]):
            raise UserError(
                "The trace contradicts itself: prompt tokens and pieces differ in number."
            )
        self._prompt = self._position = len(prompt["tokens"])

    def _step(self, step: dict) -> None:
        problem = _problem(step, self._steps, self._position)
        if problem:
            raise UserError(f"The trace contradicts itself in step {self._steps}: {problem}.")
        self._steps += 1
        self._position += len(step["output"]["tokens"])

    def _end(self, summary: dict) -> None:
        written = self._position - self._prompt
        if written != summary["new_tokens"] or self._steps != summary["steps"]:
            raise UserError("The trace contradicts itself: its summary does not count its steps.")
        self.over = True


def _parse(text: str) -> Trace:
    if len(text) > MAX_BYTES:
        raise UserError(f"This is larger than a trace may be ({MAX_BYTES >> 20} MB).")
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    reader = LineReader()
    entries = [reader.read(line) for line in lines]
    if not entries:
        raise UserError("This is no trace: its first line is not a run line.")
    if not reader.over:
        raise UserError("This trace is truncated: its last line is not a summary.")
    return Trace(entries[0], entries[1:-1], entries[-1])


def _entry(number: int, line: str) -> dict:
    try:
        entry = json.loads(line)
        to_line(entry).encode(
            "utf-8"
        )  # NaN, 1e999 and half a surrogate pair can be read, not written
    except (ValueError, RecursionError):
        raise UserError(f"Line {number} of the trace is not valid JSON; is it cut off?") from None
    try:
        _checks(_kind(entry))(entry)
    except fastjsonschema.JsonSchemaValueException as error:
        where = "/".join(error.path[1:])[:MOST_TOLD] or "the line itself"
        raise UserError(f"Line {number} of the trace does not fit the schema at {where}.") from None
    problem = _size_problem(entry.get("drafter"))
    if problem:
        raise UserError(f"Line {number} of the trace: what its drafter shows {problem}.")
    return entry


def _size_problem(shown: object) -> str | None:
    """A clause that says which limit the free-form data of a drafter exceeds; None if it exceeds none. The data is
    checked level by level, so deep nesting does no harm."""
    level, values = [shown], 0
    for _ in range(MAX_DEPTH):
        values += len(level)
        if values > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
        for value in level:
            if isinstance(value, str) and len(value) >= MAX_STRING:
                return f"holds a text of {MAX_STRING} or more characters"
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                return "holds a number that is too large"
            if isinstance(value, dict) and any(len(name) >= MAX_STRING for name in value):
                return f"holds a name of {MAX_STRING} or more characters"
        level = [part for value in level for part in _parts(value)]
        if not level:
            return None
    return f"is nested more than {MAX_DEPTH} levels deep"


def _parts(value: object) -> Iterable:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _kind(entry: object) -> str:
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind not in ("run", "step", "summary"):
        raise UserError("This is no trace: a line is neither run, step nor summary.")
    return kind


@cache
def _checks(kind: str) -> Callable[[object], object]:
    """A function that checks a line of this kind against the schema, ten times as fast as a validator of jsonschema.
    The function raises fastjsonschema.JsonSchemaValueException for a line that does not fit."""
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"), object_hook=_as_draft_7)
    return fastjsonschema.compile(
        {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}, use_default=False
    )


def _as_draft_7(schema: dict) -> dict:
    """The schema for fastjsonschema, which does not know ``prefixItems`` of JSON Schema draft 2020-12: the keyword is
    replaced by ``items``, which has the same meaning in draft 7."""
    return {"items" if name == "prefixItems" else name: value for name, value in schema.items()}


def _problem(step: dict, index: int, position: int) -> str | None:
    nodes, output = step["nodes"], step["output"]
    size = len(nodes["token"])
    if step["index"] != index:
        return "its index is out of order"
    if step["position"] != position:
        return "its position does not follow from the steps before"
    if any(len(column) != size for column in nodes.values()):
        return "its node columns differ in length"
    if any(parent >= node for node, parent in enumerate(nodes["parent"])):
        return "a node stands before its parent"
    for node, parent in enumerate(nodes["parent"]):
        if nodes["depth"][node] != (1 if parent < 0 else nodes["depth"][parent] + 1):
            return "a depth does not follow from the parents"
    named = [entry["node"] for entry in step["judgements"] + step["distributions"]]
    if any(node >= size for node in named):
        return "it names a node that does not exist"
    if len(output["tokens"]) != len(output["pieces"]):
        return "output tokens and pieces differ in number"
    return _path_problem(nodes, output)


def _path_problem(nodes: dict, output: dict) -> str | None:
    accepted = [i for i, status in enumerate(nodes["status"]) if status == "accepted"]
    if [nodes["parent"][node] for node in accepted] != [-1, *accepted][: len(accepted)]:
        return "its accepted nodes are no path from the root"
    tokens = [nodes["token"][node] for node in accepted]
    rest = output["tokens"][len(tokens) :]
    if output["tokens"][: len(tokens)] != tokens or len(rest) != (output["final"] != "none"):
        return "its output is not the accepted path and a final token"
    return None
