"""What the Learn tab asks of the server: lessons, finished runs, lessons as files, and the reader's own runs."""

import json
from collections.abc import Mapping

from app import fence, live
from app.controls import request
from app.menu import preset_menu
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
    """The tab's content before a lesson is opened."""
    return {"lessons": shelf(), "quiz": told(), "timeline": timeline()}


def learn_lesson(name: str) -> dict:
    """A whole lesson, or the whole quiz: {"lesson"}, {"quiz"} or {"error"}."""
    try:
        return {"quiz": quiz()} if name == "quiz" else {"lesson": lesson(str(name))}
    except UserError as error:
        return {"error": str(error)}


def learn_trace(name: str) -> str:
    """The finished run of an example, or the finished race; "" where there is none."""
    if any(race.name == name for race in races()):
        return race_text(name)
    return trace_text(name) if name in trace_names() else ""


def race_text(name: str) -> str:
    """A finished race as one string of tagged lines."""
    return joined(race_traces(name))


def learn_page(name: str) -> dict[str, str]:
    """A lesson, or the quiz, as one file that needs no server: {"page"} or {"error"}."""
    try:
        return {"page": lesson_file(name)}
    except UserError as error:
        return {"error": str(error)}


def lesson_file(name: str, links: Mapping[str, str] | None = None) -> str:
    """The file of a lesson or of the quiz. links: addresses of the other files beside it. Raises UserError."""
    if name == "quiz":
        return page({"quiz": quiz()}, {}, quiz()["title"], links)
    found = lesson(str(name))
    runs = {one: trace_text(one) for one in found["examples"]}
    runs |= {one: race_text(one) for one in found["races"]}
    return page({"lesson": found}, runs, found["title"], links)


def job(wish: Mapping[str, object]) -> Job:
    """The run that a reader asks for: an example's run, with the settings that its lesson lets the reader change.
    Raises UserError."""
    known, name = preset_menu(), str(wish.get("example"))
    if name not in known:
        raise UserError("That lesson’s example is not here.")
    values = dict(known[name])
    pair = json.loads(values["pair"])
    if isinstance(wish.get("options"), dict):
        pair["options"] = {**pair["options"], **wish["options"]}
    asked = {one: wish[one] for one in SET if one in wish}
    return live.opened([request({**values, **asked, "pair": json.dumps(pair)})])[0]


fence.MAKERS |= {TAB: job}
