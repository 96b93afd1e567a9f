"""The report of a suite: a text of tables, and a JSON object. This module writes both for all suites."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from engine.errors import UserError
from engine.parts.loading import Models
from engine.sizes.this_machine import processor
from engine.trace import write_lines


@dataclass(frozen=True)
class Report:
    """The report of a suite. text: for the terminal. data: for the JSON file. hint: what can be done with the file, as
    one clause."""

    text: str
    data: object
    hint: str = ""

    def deliver(self, out: str | None) -> None:
        """Print the text, and write the data to the path ``out`` unless it is None. Raises ValueError if the data
        contain NaN."""
        if self.text:
            print(self.text, flush=True)
        if out is not None:
            write_lines(
                out,
                [json.dumps(self.data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"],
            )
            print(f"written to {out}{self.hint and '; '}{self.hint}", file=sys.stderr)


def check_writable(path: Path) -> None:
    """Raise UserError if ``path`` cannot be written. Called before minutes of measuring."""
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.name} cannot be written there.")


def table(rows: Sequence[Mapping], columns: str | Sequence[str]) -> str:
    """The rows as a table, in text. Texts are aligned left and numbers right; a dash stands for None.

    columns: each is "field", "field:format", or "head=field:format" for another head. They may be one text, separated
    by spaces, if no head contains a space."""
    parts = [
        column.rpartition("=")
        for column in (columns.split() if isinstance(columns, str) else columns)
    ]
    fields = [field.partition(":")[::2] for _, _, field in parts]
    heads = [
        (head or field).replace("_", " ")
        for (head, _, _), (field, _) in zip(parts, fields, strict=True)
    ]
    cells = [[_cell(row[name], form) for name, form in fields] for row in rows]
    is_text = [any(isinstance(row[name], str) for row in rows) for name, _ in fields]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:{'<' if text else '>'}{width}}"
            for cell, width, text in zip(line, widths, is_text, strict=True)
        ).rstrip()
        for line in (heads, *cells)
    )


def _cell(value: object, form: str) -> str:
    return "-" if value is None else format(value, "" if isinstance(value, str) else form)


def figures(count: Mapping[str, float], **formulas: str) -> dict[str, float | None]:
    """Compute figures from sums. formulas: for each figure either the name of a sum, or two names with a slash between
    them, such as "tokens / steps", for a quotient. A figure is None if its divisor is zero."""
    values = {}
    for name, formula in formulas.items():
        top, _, below = formula.partition(" / ")
        values[name] = count[top]
        if below:
            values[name] = count[top] / count[below] if count[below] else None
    return values


def setting(models: Models, **more: object) -> dict:
    """The setting of a run: target, machine and versions. more: further fields."""
    return {
        "target": models.target.name,
        "parameters": models.target.parameters,
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **more,
    }


def drawing(title: str, x: str, y: str, points: Sequence[tuple[str, str, float, float]]) -> dict:
    """The data of a figure that ``python -m viz.suite`` draws. x, y: the axes' names. points: for each point its
    series, the label shown on hover, and its two coordinates."""
    keys = ("series", "label", "x", "y")
    places = [dict(zip(keys, point, strict=True)) for point in points]
    return {"title": title, "x": x, "y": y, "points": places}
