"""`python -m engine datastore TEXT --out DIR`: a datastore made of the user's text."""

import argparse
from collections.abc import Callable
from pathlib import Path

from engine.cli import terminal


def declare(parser: argparse.ArgumentParser, usual_target: Callable[[], str]) -> None:
    """Arguments and action of the command. usual_target: the target whose tokenizer is used if none is named."""
    add = parser.add_argument
    add("text", metavar="TEXT", help="a UTF-8 text file")
    add(
        "--out",
        metavar="DIR",
        required=True,
        help="folder of the datastore, for run --part datastore=DIR",
    )
    add(
        "--target",
        metavar="DIR",
        help="the target whose tokenizer is used: a directory or hub name",
    )

    def make(given: argparse.Namespace) -> int:
        from engine.methods.shared.datastore_part import make_datastore

        target = given.target or usual_target()
        count = make_datastore(Path(given.text), Path(given.out), target)
        terminal.say(f"{count:,} tokens written to {given.out}")
        return 0

    parser.set_defaults(action=make)
