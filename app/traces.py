"""Shows traces and races that visitors bring, and exports those that they take away."""

from collections.abc import Callable

from app import live
from app.example_menu import race_made_earlier
from app.kept_answers import kept_answers
from app.made import Made
from app.seats import Seat
from app.settings import LIMITS
from engine.errors import UserError
from engine.trace import read_trace
from presets import preset, races, trace_names, trace_text
from presets.fetched import missing_target
from viz.export import page
from viz.race import is_race, joined, read_race

EXAMPLE = "This run was made earlier."
RACE = "This race was run earlier."
OPENED = "Opened. It plays in your browser; nothing runs, so nothing is timed."
BACK = "Your own run again, as it was."
PUT_AWAY = "Your own run was put away; the button under the picture brings it back."

ANSWER = "A program asked for this answer; here is its run, step by step."
NO_ANSWER = "That answer is not here: it is being written, or was let go. An answer is kept for some minutes."


class Opened:
    """A job without steps: a finished trace in the place of a run. example: the name of its example; "" for a visitor's
    own trace."""

    def __init__(self, text: str, example: str = "") -> None:
        self._text = text
        self.example = example

    def header(self) -> str:
        return self._text

    def steps(self):
        return iter(())

    def cancel(self) -> None:
        pass

    def summary(self) -> str:
        return ""


def check(text: object) -> str:
    """Return the trace in this text. Raises UserError if it is not complete, is too large, or is a race."""
    text = _bounded(text)
    if is_race(text):
        raise UserError("That file holds a race of several runs; open it under Compare.")
    return read_trace(text).to_ndjson()


def check_race(text: object) -> str:
    """Return the race in this text. Raises UserError if it is no race, is too large, or has an incomplete lane."""
    text = _bounded(text)
    if not is_race(text):
        raise UserError("That file is no race; a single run opens under Watch.")
    lanes = read_race(text, LIMITS.lanes)
    return joined({lane: trace.to_ndjson() for lane, trace in lanes.items()})


def _bounded(text: object) -> str:
    if not isinstance(text, str) or "\n" not in text:
        raise UserError("That file is no trace of a run.")
    if len(text.encode("utf-8", "replace")) > LIMITS.trace_bytes:
        raise UserError(f"That file is larger than {LIMITS.trace_bytes // 1_000_000} MB.")
    return text


def open_file(session: str, tab: str, data: object, check: Callable[[object], str]) -> live.Update:
    """Put a visitor's trace file in the place of the visitor's run, if it passes the check. data: {"text", "back": true
    if it is the visitor's own run, made before}."""
    try:
        text = check(data.get("text") if isinstance(data, dict) else None)
    except UserError as error:
        return None, "error", str(error)
    return show(session, tab, text, BACK if data.get("back") is True else OPENED)


def show(session: str, tab: str, text: str, message: str, example: str = "") -> live.Update:
    """Put a finished trace, already checked, in the place of the visitor's run.

    The figures drawn from the trace need a seat on the server; they are left out where no seat is free.
    """
    seat = Seat(Opened(text, example))
    seat.stop()
    live.leave(session, tab)
    try:
        live.seats.put(session, tab, seat)
    except UserError:
        message += " Its figures are left out: too many people are running things here now."
    return text, "done", message


def show_answer(session: str, tab: str, name: str) -> live.Update:
    """Put the run of this answer, which a program asked for, in the place of the visitor's run."""
    text = kept_answers.trace(name)
    return (None, "error", NO_ANSWER) if text is None else show(session, tab, text, ANSWER)


def show_example(session: str, tab: str, name: str) -> live.Update | None:
    """Show the finished trace of an example. Returns None if it has no trace, or the visitor's run has not ended."""
    if name not in trace_names():
        return None
    said = f"{EXAMPLE} {_anew(preset(name).models, 'Run')}"
    return _show_made(session, tab, name, trace_text(name), said)


def show_race(session: str, tab: str, name: str) -> live.Update | None:
    """Show the finished race of an example. Returns None if there is none, or the visitor's race has not ended."""
    text = race_made_earlier(name)
    if not text:
        return None
    (race,) = [candidate for candidate in races() if candidate.name == name]
    return _show_made(session, tab, name, text, f"{RACE} {_anew(race.models, 'Race')}")


def _anew(models: str, button: str) -> str:
    """Return the sentence that says how a new run or race is made with this family of models."""
    absent = missing_target(models)
    if absent is None:
        return f"Press {button} for a new one."
    return f"A new one needs {absent.name}, which is not on this machine yet: see “Model”."


def _show_made(session: str, tab: str, name: str, text: str, said: str) -> live.Update | None:
    seat = live.seats.get(session, tab)
    if seat and seat.state in ("running", "paused"):
        return None
    own = seat is not None and seat.state == "done" and isinstance(seat.job, Made)
    return show(session, tab, text, f"{said} {PUT_AWAY}" if own else said, name)


def export_graphml(text: str) -> dict[str, str]:
    """Return the mean tree of this trace as GraphML, for other programs: {"graphml"} or {"error"}."""
    from viz.mean_tree import graphml, mean_tree

    try:
        return {"graphml": graphml(mean_tree(read_trace(check(text))))}
    except UserError as error:
        return {"error": str(error)}


def export_page(text: str) -> dict[str, str]:
    """Return the self-contained page that replays this trace: {"page"} or {"error"}."""
    try:
        return {"page": page(check(text), "Draftscope")}
    except UserError as error:
        return {"error": str(error)}


def export_race(text: str) -> dict[str, str]:
    """Return the self-contained page that replays this race: {"page"} or {"error"}."""
    try:
        return {"page": page(check_race(text), "Draftscope", race=True)}
    except UserError as error:
        return {"error": str(error)}
