"""Reads the lessons, each a markdown file ``NN-name.md``, in the order of their names. See docs/writing-a-lesson.md."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import unknown
from presets.lessons.front import Front, read_front
from presets.lessons.reading import read_lesson

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A lesson in the list of lessons. name: the lesson's name in an address."""

    name: str
    path: Path
    front: Front


@cache
def entries(folder: Path = HERE) -> tuple[Entry, ...]:
    """Return the lessons of a folder, in order. Raises UserError, one sentence, for an invalid head of a file."""
    files = sorted(folder.glob("[0-9][0-9]-*.md"))
    return tuple(Entry(path.stem[3:], path, read_front(path)[0]) for path in files)


@cache
def lesson(name: str, folder: Path = HERE) -> dict:
    """Return a whole lesson as plain data for the browser, with its numbers taken from the finished runs.

    Raises UserError for an unknown name, or for a mistake in the file.
    """
    by_name = {entry.name: entry for entry in entries(folder)}
    if name not in by_name:
        raise unknown("lesson", name, by_name)
    names = list(by_name)
    number = names.index(name) + 1
    return {
        **told(by_name[name], number),
        "next": names[number] if number < len(names) else "quiz",
        **read_lesson(by_name[name].path),
    }


def told(entry: Entry, number: int) -> dict:
    """Return the entry of a lesson in the list. number: from 1."""
    front = entry.front
    return {
        "name": entry.name,
        "number": number,
        "title": front.title,
        "question": front.question,
        "minutes": front.minutes,
    }


def shelf(folder: Path = HERE) -> list[dict]:
    """Return the entries of all lessons in the list, in order."""
    return [told(entry, number) for number, entry in enumerate(entries(folder), start=1)]
