"""Makes runs on a GPU that is lent for one call at a time (``app.zero``). Only strings cross to it and back.

A seat outlives events; a lent GPU does not outlive its call. So a whole run is made inside one call, in a forked
process. The engine is a module of that process, too; the visitor's request goes there as one JSON string, and each step
comes back as one. A seat then holds strings and no tensor. The run goes on while the visitor pauses, which costs them
nothing more; stopping ends the call after its next step.
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
"""Tab -> function that makes a visitor's run. Both processes have this table; all else crosses as strings."""
OPENING, A_TOKEN, MOST = 15.0, 0.06, 110.0
"""Seconds of GPU time. OPENING: to open models and measure sizes once. A_TOKEN: for one token of one lane. MOST: the
longest call."""
HOME = os.getpid()
"""The id of the serving process; a forked worker has another."""


def seconds(tab: str, asked: str) -> int:
    """Return how many seconds this call may hold the GPU; few, because each counts against the visitor's quota."""
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
    """Make the run, and yield JSON messages until it has ended.

    {"lines", "summary"} are the new lines, and the summary that the run would have if it ended there. {"refused"} is a
    sentence, in the last message.
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
    """A job whose run is made in the process that holds the lent GPU. Raises UserError if it is refused there."""

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
    """Return the job for this tab's values; on ZeroGPU its run is made by ``Fenced``. Raises UserError.

    tab: the tab's name; if the tab has several seats, "#" and the rest of the seat's name follow it.
    """
    return Fenced(tab.partition("#")[0], values) if zero.on_zero() else make(values)
