"""Loads models and slow modules in the background, so that the first run need not wait."""

import gc
import importlib
import logging
import threading
import time

from app import zero
from app.settings import model_paths, tried_ahead
from engine.errors import UserError
from engine.fast.cpu.budget import graph_memory
from engine.fast.cpu.freed_memory import give_back
from engine.methods import drafter as drafter_class
from engine.methods import drafters
from engine.parts.loading import load_models
from engine.run import RunRequest, open_run
from presets import presets, races

log = logging.getLogger("draftscope")
ready = threading.Event()
"""Set once all drafters to be tried ahead have been tried. The first run reports a model that could not be loaded."""


def warm(after: float) -> None:
    """Begin to load after ``after`` seconds, because a page that is being opened comes first. Raises UserError for an
    invalid setting of the host."""
    graph_memory()  # the host's setting is refused before the page is served
    wanted = chosen(tried_ahead())
    threading.Thread(target=_load, args=(after, wanted), name="warm", daemon=True).start()


def chosen(ahead: str) -> list[str]:
    """Return the keys of the drafters to try, out of those that have their parts. ahead: see
    ``app.settings.tried_ahead``."""
    parts = model_paths().parts.keys()
    able = [key for key, cls in drafters().items() if cls.needs.keys() <= parts]
    if ahead == "all":
        return able
    if ahead == "none":
        return []
    shown = {
        preset.drafter for preset in presets() if not preset.models
    }  # not those of other families
    shown |= {lane.drafter for race in races() for lane in race.lanes}
    return [key for key in able if key in shown]


def _load(after: float, wanted: list[str]) -> None:
    if not wanted:
        ready.set()
    time.sleep(after)
    try:
        with graph_memory().spared():
            for key in wanted:
                _try(key)
                give_back()
        importlib.import_module("viz.figures")  # brings plotly
    finally:
        keep_for_good()
        ready.set()


def keep_for_good() -> None:
    """Exclude all objects that exist now from Python's garbage collection. They stay as long as the process, and each
    search through them would delay every answer and step by 0.4 seconds."""
    gc.collect()
    gc.freeze()


def _try(drafter: str) -> None:
    """Write a few tokens with this drafter, greedily and sampled. This measures the cost of its drafts on this machine;
    on a GPU it also compiles the kernels and captures the passes that the first visitor would otherwise wait for.

    On ZeroGPU nothing runs in this process: there this function only fetches the models, so that a call finds them on
    the disk.
    """
    try:
        if zero.on_zero():
            load_models(model_paths(), drafter_class(drafter).needs, device="cpu")
            return
        for temperature in (0.0, 0.8):
            request = RunRequest(
                "Once", model_paths(), drafter=drafter, temperature=temperature, max_new_tokens=4
            )
            for _ in open_run(request).steps():
                pass
    except UserError as error:
        log.warning("%s: %s", drafter, error)
    except Exception:
        log.exception("%s could not be tried ahead of time", drafter)
