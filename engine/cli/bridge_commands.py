"""``engine export``, ``engine import`` and ``engine inspect``: settings for serving engines, records from engines, and
a report on a drafter's checkpoint."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from engine.bridges.exporting import ENGINES
from engine.cli import terminal
from engine.errors import UserError

WEIGHTS = {
    "chain": ("causal",),
    "eagle": ("eagle", "eagle3"),
    "dflash": ("dflash",),
    "mtp": ("causal", "mtp"),
}
"""Drafter -> the kinds of checkpoint that it can use."""
UNFIT = 1
"""Exit code of ``inspect`` for a drafter that does not fit."""


def declare(commands: argparse._SubParsersAction) -> None:
    export = commands.add_parser("export", help="a tuning's answer as settings of a serving engine")
    export.add_argument("record", metavar="RECORD", help="the record of a tuning")
    export.add_argument("--to", required=True, choices=tuple(ENGINES), help="the engine")
    export.add_argument(
        "--checkpoint", metavar="DIR", help="the drafter's weights, to be named in the settings"
    )
    export.set_defaults(action=_export)
    imported = commands.add_parser("import", help="acceptance from other engines' records")
    imported.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="answers or metrics of a server, a log of specspecs, traces, or a folder",
    )
    imported.add_argument("--record", metavar="OUT", help="adds the lines to this record")
    imported.set_defaults(action=_import)
    inspect = commands.add_parser("inspect", help="what a drafter's checkpoint is, and its traps")
    inspect.add_argument("checkpoint", metavar="CHECKPOINT", help="a directory or hub name")
    inspect.add_argument("--target", metavar="T", help="the target that it is to draft for")
    inspect.set_defaults(action=_inspect)


def _export(flags: argparse.Namespace) -> int:
    """Write the setting to standard output, and notes to standard error."""
    from engine.bridges.export_words import RATES
    from engine.bridges.exportable import exportable
    from engine.bridges.exporting import export
    from engine.bridges.record_lines import checked_text, record_lines

    path = Path(flags.record)
    setting = exportable(record_lines(checked_text(path), path.name), path.name, flags.to)
    if flags.checkpoint is not None:
        setting = _beside(setting, flags.checkpoint)
    exported = export(setting, flags.to)
    if not exported.text:
        raise UserError(" ".join(exported.notes))
    terminal.write(f"{exported.text}\n")
    for note in filter(None, (exported.measured, exported.differs, *exported.notes)):
        terminal.say(note)
    if exported.synthetic:
        terminal.say(
            f"To test {exported.engine} with the measured acceptance, whatever the drafter's quality: {exported.synthetic}"
        )
        terminal.say(RATES)
    return 0


def _beside(setting, checkpoint: str):
    """The setting, to which the name of its drafter's weights and their kind are added. Raises UserError if they are
    the weights of another kind of drafter."""
    from engine.bridges.drafter_kinds import KINDS
    from engine.bridges.inspecting import inspect_drafter

    kind = inspect_drafter(checkpoint).kind
    if kind not in WEIGHTS.get(setting.drafter, ()):
        name = Path(checkpoint).name
        raise UserError(
            f"{name} is {KINDS[kind].title}, and the setting to export is `{setting.drafter}`, which cannot use it."
        )
    eagle3 = {"eagle": False, "eagle3": True}.get(kind)
    return replace(setting, checkpoint=checkpoint, eagle3=eagle3)


def _import(flags: argparse.Namespace) -> int:
    from engine.bridges.importing import imported
    from engine.bridges.record_lines import checked_text, record_lines
    from engine.trace import Outlet, to_line

    before, outlet = "", None
    if flags.record is not None:
        out = Path(flags.record)
        outlet = Outlet(out)
        if out.is_file():
            earlier_lines = record_lines(checked_text(out), out.name)
            before = "".join(map(to_line, earlier_lines))
    lines = imported(flags.files)
    for row in _table(lines):
        terminal.write(f"{row}\n")
    for lacks in dict.fromkeys(line.get("source", {}).get("lacks") for line in lines):
        if lacks:
            terminal.say(lacks)
    if outlet is not None:
        outlet.write([before, *map(to_line, lines)])
    return 0


def _table(lines: list[dict]) -> list[str]:
    from engine.bridges.acceptance_numbers import numbers_of

    rows = [
        (
            "source",
            "drafter, size",
            "prompts",
            "steps",
            "drafted",
            "kept",
            "mean length",
            "rate by position, of the reached",
        )
    ]
    for line in lines:
        numbers, source = numbers_of(line), line.get("source", {})
        rates = numbers["conditional"]
        shown_rates = [f"{rate:.2f}" if rate is not None else "–" for rate in rates]
        rows.append(
            (
                terminal.one_line(
                    f"{source.get('engine', 'Draftscope')}: {source.get('name', '')}", 40
                ),
                terminal.one_line(f"{line.get('drafter', '–')} {line.get('size', '')}", 20),
                terminal.one_line(line.get("prompt_kind", "–"), 16),
                f"{line['steps']:,}" if "steps" in line else "–",
                f"{line['drafted']:,}" if "drafted" in line else "–",
                _figure(numbers["kept_share"], "{:.1%}"),
                _figure(numbers["mean_with_bonus"], "{:.2f}"),
                " ".join(shown_rates) if any(rate is not None for rate in rates) else "–",
            )
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]


def _figure(value: object, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else "–"


def _inspect(flags: argparse.Namespace) -> int:
    from engine.bridges.inspecting import inspect_drafter

    inspection = inspect_drafter(flags.checkpoint, flags.target)
    terminal.write("".join(f"{terminal.one_line(line)}\n" for line in inspection.lines()))
    return UNFIT if inspection.wrong else 0
