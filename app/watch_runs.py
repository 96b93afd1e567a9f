"""Starts, continues, pauses and stops the runs of the Watch tab."""

import gradio as gr

from app import live
from app.controls import FIELDS
from app.own_models import still_there
from app.parts import emit, shown, state_of

TAB = "watch"


def start(request: gr.Request, *values):
    session, (*values, seen) = request.session_hash, values
    make = still_there(live.watch_job(session), session, seen)
    yield from emit(live.start(session, TAB, make, _named(values)))


def step(request: gr.Request, said: str, *values):
    """Take one step of the paused run, or the first step of a new run."""
    session, (*values, seen) = request.session_hash, values
    if state_of(said) == "paused":
        yield from emit(live.resume(session, TAB, single=True))
    else:
        make = still_there(live.watch_job(session), session, seen)
        yield from emit(live.start(session, TAB, make, _named(values), single=True))


def resume(request: gr.Request):
    yield from emit(live.resume(request.session_hash, TAB))


def pause(request: gr.Request) -> None:
    live.ask(request.session_hash, TAB, "pause")


def forget(request: gr.Request) -> None:
    live.memories.leave(request.session_hash)


def stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))


def _named(values: tuple) -> dict[str, object]:
    return dict(zip(FIELDS, values, strict=True))
