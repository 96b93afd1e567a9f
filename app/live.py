"""The events of both tabs, without a word of gradio: values in, (trace, state, message) out."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from app import warm
from app.controls import request
from app.race import Race
from app.seats import FAILED, Job, Seat, Seats
from app.settings import LIMITS
from engine.errors import UserError
from engine.run import open_run

log = logging.getLogger("draftscope")

Update = tuple[str | None, str, str]
"""The trace (None: leave the picture as it is), the state, a message."""

LOADING = "Loading the models; only the first run waits for this."
EXPIRED = "That run waited too long and was let go; press Run to begin again."
PLAIN = "none"
"""The lane that every comparison is measured against."""

seats = Seats()


def watch_job(values: Mapping[str, object]) -> Job:
    return open_run(request(values))


def compare_job(values: Mapping[str, object]) -> Job:
    """Plain decoding and the chosen drafters, each with its own options at their defaults."""
    lanes = values.get("lanes")
    if not isinstance(lanes, Sequence) or isinstance(lanes, str):
        raise UserError("Choose the drafters to compare.")
    lanes = [lane for lane in dict.fromkeys(lanes) if lane != PLAIN]
    if not 2 <= len(lanes) <= LIMITS.lanes:
        raise UserError(f"Choose two to {LIMITS.lanes} drafters to compare, not {len(lanes)}.")
    wanted = [request({**values, "drafter": lane, "options": ""}) for lane in (PLAIN, *lanes)]
    return Race({one.drafter: open_run(one) for one in wanted})


def start(
    session: str,
    tab: str,
    make: Callable[[Mapping[str, object]], Job],
    values: Mapping[str, object],
    single: bool = False,
) -> Iterator[Update]:
    """Begin a run in place of the visitor's last one; single: and pause after its first step."""
    seats.leave(session, tab)
    try:
        if not warm.ready.is_set():
            yield None, "running", LOADING
        seat = seats.put(session, tab, Seat(make(values)))
    except UserError as error:
        yield None, "error", str(error)
        return
    except Exception:
        log.exception("a run could not begin")
        yield None, "error", FAILED
        return
    yield from seat.advance(single)


def resume(session: str, tab: str, single: bool = False) -> Iterator[Update]:
    """Go on with the paused run; single: for one step."""
    seat = seats.get(session, tab)
    if seat is None or seat.state == "gone":
        yield None, "error", EXPIRED
        return
    yield from seat.advance(single)


def ask(session: str, tab: str, what: str) -> None:
    """Pause or stop the run that is being advanced by another event."""
    seat = seats.get(session, tab)
    if seat:
        seat.ask(what)


def stop(session: str, tab: str) -> Update | None:
    """Stop a running or paused run. The event that advances it, if there is one, says so."""
    seat = seats.get(session, tab)
    if seat is None or seat.state == "gone":
        return None, "error", EXPIRED
    if seat.ask("stop"):
        return None
    text = seat.stop()
    return (text, "done", "") if text is not None else None


def finished(session: str, tab: str) -> str | None:
    """The visitor's trace, if the run has come to its end."""
    seat = seats.get(session, tab)
    return seat.text if seat and seat.state == "done" else None
