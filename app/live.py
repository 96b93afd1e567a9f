"""Handles the events of the tabs without gradio: control values in, (trace, state, message) out."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from app import fence, shutdown, telling, warm
from app.controls import lanes, refuse_missing, request, request_for
from app.made import made
from app.memories import Memories
from app.own import own
from app.race import Race
from app.seats import FAILED, Job, Seat, Seats
from app.settings import LIMITS, Limits
from app.sizes import Sizes
from app.visitors import VISITORS
from engine.errors import UserError
from engine.run import Opened, Plan, Run, RunRequest, begin
from presets import lane_names

log = logging.getLogger("draftscope")

Update = tuple[str | None, str, str]
"""The trace (None: leave the picture as it is), the state, a message."""

LOADING = "Loading the models; only the first run waits for this."
EXPIRED = "That run waited too long and was let go; press Run to begin again."
PUT_OUT = "That run was paused with its page closed, and made room for somebody else; press Run to begin again."

seats = Seats(here=VISITORS.here, came=VISITORS.came, address=VISITORS.address)
memories = Memories(here=VISITORS.here)
sizes = Sizes(VISITORS.here)


def watch_job(session: str) -> Callable[[Mapping[str, object]], Job]:
    """Return the function that makes this visitor's runs. They share the visitor's memory, so drafters may learn from
    one run for the next; the lanes of a race begin with an empty memory instead."""

    def make(values: Mapping[str, object]) -> Job:
        run_request = own.applied(session, request(values))
        return opened([replace(run_request, memory=memories.of(session))])[0]

    return make


def compare_job(values: Mapping[str, object], session: str = "") -> Job:
    """Return the race of the chosen drafters, each with its options and rule, on one seed and one prompt, which is read
    once."""
    run_requests = [request_for(lane, values) for lane in lanes(values.get("lanes"))]
    run_requests = [own.applied(session, run_request, talk=False) for run_request in run_requests]
    names = lane_names([run_request.drafter for run_request in run_requests])
    return Race(dict(zip(names, opened(run_requests), strict=True)))


def opened(wanted: Sequence[RunRequest], limits: Limits = LIMITS) -> list[Run]:
    """Open these runs, which will take turns, and return them. Raises UserError, also if their KV caches together would
    be larger than one visitor may have."""
    plans = [_planned(replace(request, most_nodes=limits.max_nodes), limits) for request in wanted]
    openings = [Opened.of(plan, telling.tell.get()) for plan in plans]
    megabytes = sum(opening.kv_bytes for opening in openings) / 1e6
    if megabytes > limits.kv_megabytes:
        raise UserError(
            f"This would hold {megabytes:,.0f} MB of keys and values; this page allows "
            f"{limits.kv_megabytes:,} MB. Take a shorter prompt or fewer new tokens."
        )
    return begin(openings, in_parts=True)


def _planned(request: RunRequest, limits: Limits) -> Plan:
    """Return the checked plan of this request. Raises UserError, also for a missing part or too long a conversation."""
    refuse_missing(request)
    plan = Plan.of(request)
    said = sum(len(turn["content"]) for turn in request.messages or ())
    if said > limits.conversation_characters:
        raise UserError(
            f"The conversation has {said:,} characters; this page takes at most "
            f"{limits.conversation_characters:,}. Begin a new one."
        )
    return plan


fence.MAKERS |= {"watch": lambda values: opened([request(values)])[0], "compare": compare_job}


def leave(session: str, tab: str) -> None:
    """Drop the visitor's run on this tab."""
    seats.leave(session, tab)


def start(
    session: str,
    tab: str,
    make: Callable[[Mapping[str, object]], Job],
    values: Mapping[str, object],
    single: bool = False,
    limits: Limits = LIMITS,
) -> Iterator[Update]:
    """Begin a run in place of the visitor's last run on this tab, and yield its updates. single: pause after the first
    step. limits: the limits of this run."""
    leave(session, tab)
    if shutdown.closing.is_set():
        yield None, "error", shutdown.CLOSING
        return
    try:
        if not warm.ready.is_set():
            yield None, "running", LOADING
        models = own.name_of(session)
        settled = sizes.settled(session, models, values)
        opening = telling.heard(lambda: made(session, tab, make, settled))
        job = yield from _said(opening)
        seat = seats.put(session, tab, Seat(job, limits=limits))
        sizes.keep(session, models, values, job.header())
    except UserError as error:
        yield None, "error", str(error)
        return
    except Exception:
        log.exception("a run could not begin")
        yield None, "error", FAILED
        return
    yield from seat.advance(single)


def _said(opening: Generator[tuple[str, float], None, Job]) -> Generator[Update, None, Job]:
    """Yield the progress of an opening as updates for the visitor. Returns the opened job."""
    while True:
        try:
            task, share = next(opening)
        except StopIteration as end:
            return end.value
        yield None, "running", f"{task}: {share:.0%}"


def resume(session: str, tab: str, single: bool = False) -> Iterator[Update]:
    """Continue the paused run, and yield its updates. single: pause after one step."""
    seat = seats.get(session, tab)
    if seat is None or seat.state == "gone":
        yield None, "error", _lost(session, tab)
        return
    yield from seat.advance(single)


def _lost(session: str, tab: str) -> str:
    """Return the sentence that says why the visitor's run is no longer here."""
    return PUT_OUT if seats.put_out(session, tab) else EXPIRED


def ask(session: str, tab: str, what: str) -> None:
    """Pause or stop the run that another event is advancing. what: "pause" or "stop"."""
    seat = seats.get(session, tab)
    if seat:
        seat.ask(what)


def stop(session: str, tab: str) -> Update | None:
    """Stop a running or paused run. Returns the last update, or None if the event that advances the run
    will report the stop."""
    seat = seats.get(session, tab)
    if seat is None or seat.state == "gone":
        return None, "error", _lost(session, tab)
    if seat.ask("stop"):
        return None
    text = seat.stop()
    return (text, "done", "") if text is not None else None


def finished(session: str, tab: str) -> str | None:
    """Return the trace of the visitor's run on this tab if that has come to its end, else None."""
    seat = seats.get(session, tab)
    return seat.text if seat and seat.state == "done" else None
