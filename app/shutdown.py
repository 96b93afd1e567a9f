"""Closes the server on SIGTERM or Ctrl-C: runs end as cancelled, their visitors get the output so far, and then the
server closes."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import gradio as gr

from app.seats import Seats

log = logging.getLogger("draftscope")

closing = threading.Event()
"""Set by the first signal; from then on no run begins."""
CLOSING = "The server is closing down; try again in a minute."
PATIENCE = 8.0
"""Seconds that advancing runs have to end after a signal; container hosts kill the server after ten."""
FAREWELL = 1.0
"""Seconds for the last lines to reach the browsers."""


def serve_until_told(page: gr.Blocks, seats: Seats) -> None:
    """Wait in the main thread for a signal; then end the runs and close the page."""
    signalled = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _: (closing.set(), signalled.set()))
    signalled.wait()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_DFL)  # a second signal ends at once
    log.info("closing", extra={"running": seats.running()})
    end_runs(seats, lambda: any(page._queue.active_jobs))
    page.close(verbose=False)
    log.info("closed")


def end_runs(seats: Seats, sending: Callable[[], bool]) -> bool:
    """Stop all runs, running or paused. Returns whether all of them ended in time.

    sending: whether events still have something to send.
    """
    until = time.monotonic() + PATIENCE
    seats.stop_all()
    while (seats.running() or sending()) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(FAREWELL)
    return not seats.running()


def end() -> None:
    """End the process at once. A thread that is loading or computing cannot be asked to stop, and an interpreter that
    shuts down while such a thread runs aborts."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
