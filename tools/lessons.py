"""python -m tools.lessons -o FOLDER: the lessons as static files, which need no server and ask none.

A file for each lesson, one for the quiz, and index.html with the list and the timeline. They open from a disk
and from any web server.
"""

import argparse
import sys
from pathlib import Path

from app.lessons import learn_shelf, lesson_file
from engine.errors import UserError
from engine.trace.writing import write_lines
from presets.lessons import shelf
from viz.lesson import page


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lessons", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    given = parser.parse_args(arguments)
    try:
        count = write_lessons(given.output)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{given.output}: {count} lessons and the quiz; open index.html")
    return 0


def write_lessons(folder: Path) -> int:
    """Write all the files. Returns the number of lessons. Raises UserError if the folder cannot be written."""
    names = [*(entry["name"] for entry in shelf()), "quiz"]
    links = {f"lesson:{name}": f"{name}.html" for name in names}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error
    for name in names:
        write_lines(folder / f"{name}.html", [lesson_file(name, links)])
    index = page({"shelf": learn_shelf()}, {}, "Draftscope: lessons", links)
    write_lines(folder / "index.html", [index])
    return len(names) - 1


if __name__ == "__main__":
    sys.exit(main())
