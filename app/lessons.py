"""The server side of the Learn tab: lessons, finished runs, lessons as files, and the reader's own runs."""

import json
from collections.abc import Mapping

from app import fence, live
from app.controls import request
from app.example_menu import preset_menu
from app.seats import Job
from engine.errors import UserError
from presets import race_traces, races, trace_names, trace_text
from presets.lessons import lesson, shelf
from presets.lessons.field import timeline
from presets.lessons.quiz import quiz, told
from viz.lesson import page
from viz.race import joined

TAB = "learn"
SET = ("temperature", "seed", "prompt")
"""The settings of an example that a reader may change, besides the options of its drafter."""


def learn_shelf() -> dict:
    """Return the tab's content before a lesson is opened: {"lessons", "quiz", "timeline"}."""
    return {"lessons": shelf(), "quiz": told(), "timeline": timeline()}


def learn_lesson(name: str) -> dict:
    """Return a whole lesson, or the whole quiz: {"lesson"}, {"quiz"} or {"error"}."""
    try:
        return {"quiz": quiz()} if name == "quiz" else {"lesson": lesson(str(name))}
    except UserError as error:
        return {"error": str(error)}


def learn_trace(name: str) -> str:
    """Return the finished trace of the example or race of this name; "" if there is none."""
    if any(race.name == name for race in races()):
        return race_text(name)
    return trace_text(name) if name in trace_names() else ""


def race_text(name: str) -> str:
    """Return a finished race as one string, each line tagged with its lane."""
    return joined(race_traces(name))


def learn_page(name: str) -> dict[str, str]:
    """Return a lesson, or the quiz, as one file that needs no server: {"page"} or {"error"}."""
    try:
        return {"page": lesson_file(name)}
    except UserError as error:
        return {"error": str(error)}


def lesson_file(name: str, links: Mapping[str, str] | None = None) -> str:
    """Return the HTML file of a lesson or of the quiz. links: lesson name -> address of its file. Raises UserError."""
    if name == "quiz":
        return page({"quiz": quiz()}, {}, quiz()["title"], links)
    opened = lesson(str(name))
    runs = {run: trace_text(run) for run in opened["examples"]}
    runs |= {run: race_text(run) for run in opened["races"]}
    return page({"lesson": opened}, runs, opened["title"], links)


def job(wish: Mapping[str, object]) -> Job:
    """Return the run of an example, with the reader's options of its drafter and settings in SET. Raises UserError."""
    menu, name = preset_menu(), str(wish.get("example"))
    if name not in menu:
        raise UserError("That lesson’s example is not here.")
    values = dict(menu[name])
    pair = json.loads(values["pair"])
    if isinstance(wish.get("options"), dict):
        pair["options"] = {**pair["options"], **wish["options"]}
    changes = {setting: wish[setting] for setting in SET if setting in wish}
    return live.opened([request({**values, **changes, "pair": json.dumps(pair)})])[0]


fence.MAKERS |= {TAB: job}
