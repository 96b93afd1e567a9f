"""The Compare tab: several drafters race on one prompt."""

import gradio as gr

from app import figures, live, words
from app.controls import RANGES
from app.menu import drafter_menu, preset_menu
from app.parts import (
    QUICK,
    canvas,
    emit,
    engine_event,
    lead,
    over,
    prompt_box,
    sampling_controls,
    shown,
)
from app.settings import LIMITS

TAB = "compare"
LANES = ["chain", "dyspec", "prompt_lookup", "ddtree"]
FIELDS = ("prompt", "lanes", *RANGES)


class Compare:
    """The tab's components; ``wire`` gives them their events."""

    def __init__(self) -> None:
        self.presets, drafters = preset_menu(), drafter_menu()
        lead(words.COMPARE_LEAD)
        self.said, self.view = canvas(TAB, words.COMPARE_HINT)
        name, first = next(iter(self.presets.items()))
        lanes = [(entry["label"], key) for key, entry in drafters.items() if key != live.PLAIN]
        with gr.Row(elem_classes="pg-room", elem_id="compare-room"):
            with gr.Column(elem_classes="pg-panel", scale=0, min_width=280):
                self.preset = gr.Dropdown(
                    [(entry["title"], key) for key, entry in self.presets.items()],
                    value=name,
                    label="Example",
                    elem_id="race-preset",
                )
                self.prompt = prompt_box("race-prompt", first["prompt"])
                with gr.Row(elem_classes="pg-buttons"):
                    self.run = gr.Button("Race", variant="primary", elem_id="race", min_width=60)
                    self.pause = gr.Button("Pause", elem_id="race-pause", min_width=60)
                    self.stop = gr.Button("Stop", elem_id="race-stop", min_width=60)
                self.said.render()
                self.lanes = gr.CheckboxGroup(
                    lanes,
                    value=[key for _, key in lanes if key in LANES][: LIMITS.lanes],
                    label="Lanes",
                    info=f"Two to {LIMITS.lanes}; plain decoding always runs beside them.",
                    elem_id="race-lanes",
                )
                with gr.Accordion("Sampling", open=False, elem_id="race-more"):
                    self.numbers = sampling_controls("race-")
            with gr.Column(elem_classes="pg-stage"):
                self.view.render()
                self.figures = figures.RacePanel("compare-figures")

    def wire(self) -> None:
        fields, canvas_out = [self.prompt, self.lanes, *self.numbers], [self.view, self.said]
        advance = engine_event()
        runs = [
            self.run.click(_start, fields, canvas_out, **advance),
            self.said.ask_resume(_resume, None, canvas_out, **advance),
        ]
        for run in runs:
            run.then(None, js=over(TAB))
            run.failure(None, js=over(TAB))
        for end in (*runs, self.stop.click(_stop, None, canvas_out, **QUICK)):
            self.figures.follow(end, TAB)
        self.said.ask_pause(_pause, None, None, **QUICK)
        self.preset.input(self._choose_preset, self.preset, [self.prompt, *self.numbers], **QUICK)

    def _choose_preset(self, name: str) -> list:
        chosen = self.presets.get(name)
        if chosen is None:
            return [gr.skip()] * (1 + len(RANGES))
        return [chosen["prompt"], *(chosen.get(n, r.default) for n, r in RANGES.items())]


def _start(request: gr.Request, *values):
    fields = dict(zip(FIELDS, values, strict=True))
    yield from emit(live.start(request.session_hash, TAB, live.compare_job, fields))


def _resume(request: gr.Request):
    yield from emit(live.resume(request.session_hash, TAB))


def _pause(request: gr.Request) -> None:
    live.ask(request.session_hash, TAB, "pause")


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))
