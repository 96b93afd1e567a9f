"""python -m viz TRACE.ndjson -o OUT.html: write a file that replays a trace or a race offline."""

import argparse
import sys
from pathlib import Path

from engine.errors import UserError
from engine.trace import Outlet, read_text, read_trace
from viz.export import page
from viz.race import is_race, read_race


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viz", description=__doc__)
    parser.add_argument(
        "trace", type=Path, help="a trace, as the engine writes it, or a saved race (NDJSON)"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="the HTML file to write")
    parser.add_argument("--title", default=None, help="heading (default: the drafter and the file)")
    options = parser.parse_args(arguments)
    try:
        export(options.trace, options.output, options.title)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def export(source: Path, target: Path, title: str | None = None) -> None:
    """Write the page. Raises UserError and then leaves no file behind."""
    outlet = Outlet(target)
    text = read_text(source)
    race = is_race(text)
    if race:
        name = ", ".join(read_race(text))
    else:
        name = read_trace(text + "\n").run["drafter"]["key"]
    outlet.write([page(text, title or f"Draftscope: {name}, {source.stem}", race)])


if __name__ == "__main__":
    sys.exit(main())
