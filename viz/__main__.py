"""python -m viz TRACE.ndjson -o OUT.html: write a file that replays a trace or a race offline."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from engine.errors import UserError
from engine.trace import read_text, read_trace
from viz.export import page
from viz.race import is_race, read_race


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viz", description=__doc__)
    parser.add_argument(
        "trace", type=Path, help="a trace, as the engine writes it, or a saved race (NDJSON)"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="the HTML file to write")
    parser.add_argument("--title", default=None, help="heading (default: the drafter and the file)")
    given = parser.parse_args(arguments)
    try:
        export(given.trace, given.output, given.title)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def export(source: Path, target: Path, title: str | None = None) -> None:
    """Write the page. Raises UserError and then leaves no file behind."""
    text = read_text(source)
    race = is_race(text)
    if race:
        name = ", ".join(read_race(text))
    else:
        name = read_trace(text + "\n").run["drafter"]["key"]
    write_whole(target, page(text, title or f"Draftscope: {name}, {source.stem}", race))


def write_whole(target: Path, text: str) -> None:
    """Write to a temporary file and rename it, so that no reader sees half a file."""
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UserError(f"Cannot write {target}: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o644)
        os.replace(beside, target)
    except OSError as error:
        Path(beside).unlink(missing_ok=True)
        raise UserError(f"Cannot write {target}: {error.strerror}.") from error


if __name__ == "__main__":
    sys.exit(main())
