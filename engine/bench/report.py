"""The report of a suite: one text of tables and one JSON object, written here for all suites."""

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
    """text: for the terminal. data: for the file, as JSON. hint: what the file is good for, in one clause."""

    text: str
    data: object
    hint: str = ""

    def deliver(self, out: str | None) -> None:
        """Print the text, and write the data where ``out`` says (NaN is an error)."""
        if self.text:
            print(self.text, flush=True)
        if out is not None:
            write_lines(
                out,
                [json.dumps(self.data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"],
            )
            print(f"written to {out}{self.hint and '; '}{self.hint}", file=sys.stderr)


def check_writable(path: Path) -> None:
    """Raises UserError if ``path`` cannot be written, before minutes of measuring rather than after."""
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.name} cannot be written there.")


def table(rows: Sequence[Mapping], columns: str | Sequence[str]) -> str:
    """columns: "field" or "field:format", and for another head "head=field:format"; as one text where no name has a
    space. Texts stand left, numbers right, and a dash where there is none."""
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
    """By name: a sum, or one divided by another ("tokens / steps"); None where that is zero."""
    values = {}
    for name, formula in formulas.items():
        top, _, below = formula.partition(" / ")
        values[name] = count[top]
        if below:
            values[name] = count[top] / count[below] if count[below] else None
    return values


def setting(models: Models, **more: object) -> dict:
    """The target, the machine and the versions of a run; more: further fields."""
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
    """A figure that ``python -m viz.suite`` draws. x, y: names of the axes. points: series, label shown on hover, place."""
    keys = ("series", "label", "x", "y")
    places = [dict(zip(keys, point, strict=True)) for point in points]
    return {"title": title, "x": x, "y": y, "points": places}
