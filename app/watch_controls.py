"""The components of the Watch tab and their places."""

from collections.abc import Mapping

import gradio as gr

from app import figures, recorded, traces, words
from app.example_menu import opening, preset_menu, with_other_traces
from app.menu import offer
from app.model_control import ModelControl
from app.own_models import OwnSection
from app.parts import (
    canvas,
    example_note,
    heal_box,
    html,
    lead,
    names_box,
    prompt_box,
    sampling_controls,
    schema_box,
)
from app.settings import LIMITS
from app.watch_runs import TAB


class WatchControls:
    """The components of the Watch tab, without their events."""

    def __init__(self) -> None:
        self.presets, self.offer = preset_menu(), offer()
        first_name, first = next(iter(self.presets.items()))
        lead(words.WATCH_LEAD)
        self.said, self.view = canvas(TAB, words.WATCH_HINT, opening(), with_other_traces())
        self.recorded = html(
            "DraftscopePage.recorded({element: element.querySelector('.pg-mount'), trigger, server}); "
            "/* events: 'chosen' */",
            server_functions=[recorded.recorded_requests],
            visible=recorded.FOLDER is not None,
            elem_id="recorded",
        )
        with gr.Row(elem_classes="pg-offer"):
            self.preset = html(
                "DraftscopePage.cards({element: element.querySelector('.pg-mount'), props, trigger, "
                "watch}); /* events: 'chosen' */",
                value=first_name,
                cards=[
                    {"name": name, **{part: entry[part] for part in ("title", "look_for", "group")}}
                    for name, entry in self.presets.items()
                    if entry["listed"]
                ],
                elem_id="preset",
            )
            self.look_for = example_note(TAB, self.presets, words.WATCH_OWN, "prompt")
        with gr.Row(elem_classes="pg-ask"):
            self.prompt = prompt_box("prompt", first["prompt"])
            self._buttons()
            self.said.render()
        with gr.Row(elem_id="watch-room", elem_classes="pg-room"):
            with gr.Column(
                elem_id="change-panel", elem_classes="pg-change-panel", scale=0, min_width=280
            ):
                self._panel(first)
            with gr.Column(elem_classes="pg-picture"):
                self.view.render()
        with gr.Column(elem_classes="pg-after"):
            self.tools = html(
                "DraftscopePage.tools({element: element.querySelector('.pg-mount'), props, "
                "trigger, watch, server}); /* events: 'opened' 'link' 'moved' 'returned' */",
                server_functions=[traces.export_page],
                limit=LIMITS.trace_bytes,
                elem_id="tools",
            )
            self.figures = figures.RunPanel("watch-figures")

    def _buttons(self) -> None:
        with gr.Row(elem_classes="pg-buttons"):
            self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=60)
            self.pause = gr.Button("Pause", elem_id="pause", min_width=60)
            self.step = gr.Button("Step", elem_id="step", min_width=60)
            self.stop = gr.Button("Stop", elem_id="stop", min_width=60)
            html("DraftscopePage.change(element);", elem_classes="pg-change")

    def _panel(self, first: Mapping) -> None:
        """Build the controls of a run besides its prompt; the button "Change it" opens them."""
        self.pair = html(
            "DraftscopePage.pair({element: element.querySelector('.pg-mount'), props, "
            "trigger, watch}); /* events: 'edited' 'forget' */",
            value=first["pair"],
            elem_id="pair",
        )
        self.model = ModelControl(TAB, "models", prompt="prompt")
        self.models = self.model.choice
        self.numbers = sampling_controls(first, more=self._constraints)
        self.own = OwnSection()

    def _constraints(self) -> None:
        self.json_schema, self.python_names = schema_box("json-schema"), names_box("python-names")
        self.heal = heal_box("heal")

    @property
    def fields(self) -> list:
        """The controls that make a run, in the order of FIELDS."""
        held = [self.json_schema, self.python_names]
        return [self.prompt, self.heal, self.pair, *held, *self.numbers, self.models]
