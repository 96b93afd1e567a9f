"""Lessons: one markdown file each, in the order of their names, ``NN-name.md``. See docs/writing-a-lesson.md."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import unknown
from presets.lessons.front import Front, read_front
from presets.lessons.reading import read_lesson

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A lesson on the list. name: its name in an address."""

    name: str
    path: Path
    front: Front


@cache
def entries(folder: Path = HERE) -> tuple[Entry, ...]:
    """The lessons of a folder, in order. Raises UserError, one sentence, for a bad front matter."""
    files = sorted(folder.glob("[0-9][0-9]-*.md"))
    return tuple(Entry(path.stem[3:], path, read_front(path)[0]) for path in files)


@cache
def lesson(name: str, folder: Path = HERE) -> dict:
    """A whole lesson as plain data for the browser, with its numbers taken from the finished runs.

    Raises UserError for an unknown name, or for a mistake in the file.
    """
    known = {entry.name: entry for entry in entries(folder)}
    if name not in known:
        raise unknown("lesson", name, known)
    names = list(known)
    number = names.index(name) + 1
    return {
        **told(known[name], number),
        "next": names[number] if number < len(names) else "quiz",
        **read_lesson(known[name].path),
    }


def told(entry: Entry, number: int) -> dict:
    """The list's entry for a lesson."""
    front = entry.front
    return {
        "name": entry.name,
        "number": number,
        "title": front.title,
        "question": front.question,
        "minutes": front.minutes,
    }


def shelf(folder: Path = HERE) -> list[dict]:
    """The list's entries for all lessons, in order."""
    return [told(entry, number) for number, entry in enumerate(entries(folder), start=1)]
