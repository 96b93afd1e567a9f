"""The Tune tab: which drafter pays for these prompts, with how many drafted tokens, and up to how many texts at
once."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import gradio as gr

from app import link, live, words
from app.controls import RANGES
from app.menu import offer
from app.model_control import ModelControl
from app.own_models import OwnSection, still_there
from app.parts import (
    EVERY,
    QUICK,
    canvas,
    emit,
    engine_event,
    html,
    lead,
    moved,
    over,
    sampling_controls,
    shown,
    tell_controls,
)
from app.settings import LIMITS
from app.tune_files import tune_earlier, tune_estimate, tune_export, tune_five, tune_import
from app.tuning import TAB, WORDS, tuning_job
from presets.tuning import NEW_TOKENS

FIELDS = ("prompts", *RANGES, "models")
FIRST = {"max_new_tokens": NEW_TOKENS}
PROMPTS = json.dumps({"source": "ours", "kinds": list(WORDS), "text": "", "name": "", "all": False})


class Tune:
    """The components of the Tune tab; ``wire`` attaches their events."""

    def __init__(self) -> None:
        self.offer = offer()
        lead(words.TUNE_LEAD)
        self.said, self.view = canvas(TAB, words.TUNE_HINT)
        with gr.Row(elem_id="tune-room"):
            with gr.Column(elem_id="tune-what"):
                self.prompts = html(
                    "DraftscopePage.tuneAsk({element: element.querySelector('.pg-mount'), props, trigger, "
                    "watch}); /* events: 'edited' */",
                    value=PROMPTS,
                    kinds=list(WORDS.items()),
                    most=LIMITS.tune_bytes,
                    elem_id="tune-ask",
                )
                with gr.Row(elem_classes="pg-buttons"):
                    self.run = gr.Button("Measure", variant="primary", elem_id="measure")
                    self.stop = gr.Button("Stop", elem_id="tune-stop")
                self.said.render()
            with gr.Column(elem_id="tune-set"):
                self.model = ModelControl(TAB, "tune-models")
                self.numbers = sampling_controls(FIRST, "tune-")
        self.view.render()
        self.tools = html(
            "DraftscopePage.tuneTools({element: element.querySelector('.pg-mount'), props, trigger, "
            "server}); /* events: 'link' 'moved' */",
            server_functions=[tune_earlier, tune_export, tune_import, tune_estimate, tune_five],
            limit=LIMITS.trace_bytes,
            elem_id="tune-tools",
        )

    @property
    def fields(self) -> list:
        """The controls that make a tuning, in the order of FIELDS."""
        return [self.prompts, *self.numbers, self.model.choice]

    def wire(self, page: gr.Blocks, own: OwnSection) -> None:
        """Attach the events. own: the section of Watch that shows the visitor's own models."""
        canvas_out = [self.view, self.said]
        run = self.run.click(_start, [*self.fields, own.view], canvas_out, **engine_event())
        run.then(None, js=over(TAB))
        run.failure(None, js=over(TAB))
        own.follow(run)
        self.said.ask_stop(_stop, None, canvas_out, **QUICK)
        self.model.wire()
        loaded = page.load(self._read_address, None, self.fields, **QUICK)
        came = self.tools.moved(self._move, None, self.fields, **EVERY)
        came.then(None, js=moved(TAB))
        self.tools.link(
            None, self.fields, None, js=f"(...v) => {{ DraftscopePage.link('{TAB}', v); }}"
        )
        numbers = [number.change for number in self.numbers]
        edits = [self.prompts.edited, self.model.choice.change, *numbers, came.then]
        tell_controls(TAB, loaded.then, edits, self.fields)

    def _read_address(self, request: gr.Request) -> list:
        return self._set(link.read_tune(request.query_params, self.offer))

    def _move(self, event: gr.EventData) -> list:
        """Return the control values of the address to which Back or Forward in the browser leads."""
        return self._set(link.read_tune(link.query_of(event._data), self.offer))

    def _set(self, values: Mapping) -> list:
        """Return values for the controls, in the order of FIELDS."""
        usual = {name: bounds.default for name, bounds in RANGES.items()} | FIRST
        numbers = [values.get(name, usual[name]) for name in RANGES]
        prompts = {**json.loads(PROMPTS), **values.get("prompts", {})}
        return [json.dumps(prompts), *numbers, values.get("models", "")]


def _start(request: gr.Request, *values):
    session, (*values, seen) = request.session_hash, values
    fields = dict(zip(FIELDS, values, strict=True))
    make = still_there(partial(tuning_job, session=session), session, seen)
    limits = replace(LIMITS, run_seconds=LIMITS.tune_seconds)
    yield from emit(live.start(session, TAB, make, fields, limits=limits))


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))
