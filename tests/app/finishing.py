"""Makes a finished run of a visitor, without a page."""

from app import live
from app.made import made
from app.seats import Seat
from app.settings import model_paths
from engine.run import RunRequest, open_run

SESSION = "somebody"


def finished_run(
    drafter: str = "prompt_lookup", tokens: int = 12, session: str = SESSION, **more
) -> Seat:
    """Make a run of this drafter in the visitor's seat of Watch, and return the seat. ``live.leave`` frees it. more:
    further fields of the run's request."""
    request = RunRequest(
        "One, two, one, two,", model_paths(), drafter, max_new_tokens=tokens, **more
    )
    job = made(session, "watch", lambda _: open_run(request), {})
    seat = live.seats.put(session, "watch", Seat(job))
    seat.paged = True  # else it is let go after half a minute
    list(seat.advance())
    return seat
