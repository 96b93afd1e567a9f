"""Traces that visitors bring and take away."""

from app import live
from app.seats import Seat
from app.settings import LIMITS
from engine.errors import UserError
from engine.trace import read_trace
from viz.export import page


class Opened:
    """A finished trace in the place of a run."""

    def __init__(self, text: str) -> None:
        self._text = text

    def header(self) -> str:
        return self._text

    def steps(self):
        return iter(())

    def cancel(self) -> None:
        pass

    def summary(self) -> str:
        return ""


def check(text: object) -> str:
    """The trace if it is one, whole, and not too large. Raises UserError."""
    if not isinstance(text, str) or "\n" not in text:
        raise UserError("That file is no trace of a run.")
    if len(text.encode("utf-8", "replace")) > LIMITS.trace_bytes:
        raise UserError(f"That trace is larger than {LIMITS.trace_bytes // 1_000_000} MB.")
    return read_trace(text).to_ndjson()


def open_trace(session: str, tab: str, data: dict) -> live.Update:
    """Put a visitor's trace where their run was."""
    try:
        seat = Seat(Opened(check(data.get("text"))))
        seat.stop()
        live.seats.put(session, tab, seat)
    except UserError as error:
        return None, "error", str(error)
    return seat.text, "done", "Opened. The trace plays in your browser; nothing runs here."


def export_page(text: str) -> dict[str, str]:
    """The self-contained page that replays this trace: {"page"} or {"error"}."""
    try:
        return {"page": page(check(text), "Draftscope")}
    except UserError as error:
        return {"error": str(error)}
