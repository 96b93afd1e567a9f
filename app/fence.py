"""Makes visitors' runs on a GPU that is lent for one call at a time (``app.zero``). The call runs in a process of its
own, and only strings pass between that process and the server.

A seat outlives events; a lent GPU does not outlive its call. So a whole run is made inside one call, in a forked
process, which has the engine in its own memory. The visitor's request goes there as one JSON string, and each step
comes back as one JSON string. So a seat holds strings and no tensor. The run goes on while the visitor pauses, which
costs the visitor nothing more. If the visitor stops the run, the call ends after its next step.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping

import torch
from gradio import Error as GradioError

from app import warm, zero
from app.seats import Job
from engine.errors import UserError

Maker = Callable[[Mapping[str, object]], Job]

MAKERS: dict[str, Maker] = {}
"""Tab -> function that makes a visitor's run. Both processes have this table; everything else passes between them as
strings."""
OPENING, A_TOKEN, MOST = 15.0, 0.06, 110.0
"""Seconds of GPU time. OPENING: to open models and measure sizes once. A_TOKEN: for one token of one lane. MOST: the
longest call."""
HOME = os.getpid()
"""The id of the serving process; a forked worker has another."""


def seconds(tab: str, asked: str) -> int:
    """Return how many seconds this call may hold the GPU; few, because each second counts against the visitor's
    quota."""
    if tab == "tune":
        return round(MOST)
    values = json.loads(asked)
    tokens = values.get("max_new_tokens") or values.get("new_tokens")
    tokens = tokens if isinstance(tokens, int | float) and tokens > 0 else 256
    try:
        lanes = len(json.loads(values["lanes"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        lanes = 1
    return round(min(OPENING + A_TOKEN * tokens * max(1, lanes), MOST))


@zero.gpu(seconds)
def written(tab: str, asked: str) -> Iterator[str]:
    """Make the run, and yield JSON messages until the run has ended. tab: a key of MAKERS. asked: the visitor's
    request, as JSON.

    A message {"lines", "summary"} has the new lines of the run, and the summary that the run would have if it ended
    with these lines. A message {"refused"} has a sentence that says why the run is refused; it is the last message.
    """
    if os.getpid() != HOME:
        torch.set_num_threads(1)  # a forked process lacks its parent's threads
    try:
        job = MAKERS[tab](json.loads(asked))
        try:
            yield _message(job.header(), job)
            for line in job.steps():
                yield _message(line, job)
        finally:
            job.cancel()
        yield _message("", job)
    except UserError as error:
        yield json.dumps({"refused": str(error)})


def _message(lines: str, job: Job) -> str:
    return json.dumps({"lines": lines, "summary": job.summary()})


class Fenced:
    """A job whose run is made in the process that holds the lent GPU. Raises UserError if that process refuses the
    run."""

    def __init__(self, tab: str, values: Mapping[str, object]) -> None:
        warm.ready.wait()  # a process must not be forked while one of its threads holds the engine's locks
        self._messages = written(tab, json.dumps(dict(values)))
        self._summary = ""
        self._header = self._next() or ""

    def header(self) -> str:
        return self._header

    def steps(self) -> Iterator[str]:
        while (lines := self._next()) is not None:
            if lines:
                yield lines

    def cancel(self) -> None:
        self._messages.close()

    def summary(self) -> str:
        return self._summary

    def _next(self) -> str | None:
        try:
            message = next(self._messages, None)
        except GradioError as error:  # gradio's sentence says why: no GPU, or no quota
            raise UserError(str(error.message)) from error
        if message is None:
            return None
        parsed = json.loads(message)
        if "refused" in parsed:
            raise UserError(parsed["refused"])
        self._summary = parsed["summary"]
        return parsed["lines"]


def job(tab: str, make: Maker, values: Mapping[str, object]) -> Job:
    """Return the job for a visitor's request: on ZeroGPU a ``Fenced`` job, elsewhere the job that ``make`` returns.
    Raises UserError if the request is refused.

    tab: the tab's name; if the tab has several seats, "#" and the rest of the seat's name follow it. values: the
    request.
    """
    return Fenced(tab.partition("#")[0], values) if zero.on_zero() else make(values)
