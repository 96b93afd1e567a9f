"""The Compare tab: several drafters race on one prompt."""

from collections.abc import Mapping
from functools import partial

import gradio as gr

from app import figures, link, live, traces, words
from app.controls import RANGES
from app.example_menu import opening_race, race_made_earlier, race_menu
from app.menu import offer
from app.model_control import ModelControl
from app.own_models import OwnSection, still_there
from app.parts import (
    EVERY,
    QUICK,
    SLOW,
    canvas,
    emit,
    engine_event,
    example_note,
    html,
    lead,
    moved,
    name_whose,
    over,
    prompt_box,
    sampling_controls,
    shown,
    tell_controls,
)
from app.settings import LIMITS
from viz.race import read_race

TAB = "compare"
FIELDS = ("prompt", "lanes", *RANGES, "models")


class Compare:
    """The components of the Compare tab; ``wire`` attaches their events."""

    def __init__(self) -> None:
        self.races, self.offer = race_menu(), offer()
        first = next(iter(self.races.values()))
        lead(words.COMPARE_LEAD)
        self.said, self.view = canvas(TAB, words.COMPARE_HINT)
        with gr.Row(elem_classes="pg-ask"):
            self.preset = gr.Dropdown(
                [*((race["title"], name) for name, race in self.races.items()), (words.OWN, "")],
                value=next(iter(self.races)),
                label="Example",
                elem_id="race-preset",
            )
            self.prompt = prompt_box("race-prompt", first["prompt"])
            self._buttons()
            self.said.render()
        self.look_for = example_note(TAB, self.races, words.COMPARE_OWN, "race-prompt")
        with gr.Row(elem_id="compare-room", elem_classes="pg-room"):
            with gr.Column(
                elem_id="race-change-panel", elem_classes="pg-change-panel", scale=0, min_width=280
            ):
                self.lanes = html(
                    "DraftscopePage.lanes({element: element.querySelector('.pg-mount'), props, "
                    "trigger, watch}); /* events: 'edited' */",
                    value=first["lanes"],
                    most=LIMITS.lanes,
                    elem_id="race-lanes",
                )
                self.model = ModelControl(TAB, "race-models", first["models"], "race-prompt")
                self.models = self.model.choice
                self.numbers = sampling_controls(first, "race-")
            with gr.Column(elem_classes="pg-picture"):
                self.view.render()
        with gr.Column(elem_classes="pg-after"):
            self.tools = html(
                "DraftscopePage.raceTools({element: element.querySelector('.pg-mount'), props, "
                "trigger, server}); /* events: 'seen' 'opened' 'link' 'moved' */",
                server_functions=[traces.export_race],
                limit=LIMITS.trace_bytes,
                elem_id="race-tools",
            )
            self.figures = figures.RacePanel("compare-figures")

    def _buttons(self) -> None:
        with gr.Row(elem_classes="pg-buttons"):
            self.run = gr.Button("Race", variant="primary", elem_id="race", min_width=60)
            self.pause = gr.Button("Pause", elem_id="race-pause", min_width=60)
            self.stop = gr.Button("Stop", elem_id="race-stop", min_width=60)
            html(
                "DraftscopePage.change(element, 'race-', '#compare-view .ds-race-card');",
                elem_classes="pg-change",
            )

    def wire(self, page: gr.Blocks, own: OwnSection) -> None:
        """Attach the events. own: the section of Watch that shows the visitor's own models."""
        fields = [self.prompt, self.lanes, *self.numbers, self.models]
        canvas_out = [self.view, self.said]
        example = [self.look_for, self.preset]
        controls = [*example, *fields]
        advance = engine_event()
        runs = [
            self.run.click(_start, [*fields, own.view], canvas_out, **advance),
            self.said.ask_resume(_resume, None, canvas_out, **advance),
        ]
        for run in runs:
            run.then(None, js=over(TAB))
            run.failure(None, js=over(TAB))
        own.follow(runs[0])
        brought = [
            self.tools.opened(self._open, None, [*canvas_out, *controls], **SLOW),
            self.preset.input(self._choose, self.preset, [*canvas_out, *controls], **QUICK),
            self.tools.moved(self._move, None, [*canvas_out, *controls], **EVERY),
        ]
        brought[-1].then(None, js=moved(TAB))
        self.said.ask_stop(_stop, None, canvas_out, **QUICK)
        self.tools.seen(self._show_earlier, None, canvas_out, **SLOW)
        self.figures.wire()
        self.model.wire()
        self.said.ask_pause(_pause, None, None, **QUICK)
        self.tools.link(None, fields, None, js=f"(...v) => {{ DraftscopePage.link('{TAB}', v); }}")
        loaded = page.load(self._read_address, None, controls, **QUICK)
        edits = [self.look_for.edited, self.lanes.edited, self.models.change]
        settled = [
            event.then for event in brought
        ]  # while these events set controls, some controls still hold old values
        named = [*edits, self.numbers[0].change, loaded.then, *settled[1:]]
        name_whose(TAB, named, [self.look_for, *fields], example)
        numbers = [number.change for number in self.numbers]
        tell_controls(TAB, loaded.then, [*edits, *numbers, *settled], fields)

    def _choose(self, name: str, request: gr.Request) -> list:
        """Return the updates that show this example's finished race and its settings. For "", which names no example,
        only the two components that show the example's name change."""
        chosen = self.races.get(name)
        if chosen is None:
            return [gr.skip()] * 2 + ["", ""] + [gr.skip()] * len(FIELDS)
        earlier = shown(traces.show_race(request.session_hash, TAB, name))
        return [*earlier, name, name, *self._set(chosen)]

    def _read_address(self, request: gr.Request) -> list:
        """Return the control values of the address with which the page was loaded. Every control gets a value: gradio
        forgets the props of a gr.HTML in a hidden tab if its update is gr.skip()."""
        return self._named(self._wished(request.query_params))

    def _move(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the updates that show the race and set the controls for the address to which Back or Forward in the
        browser leads."""
        wish = self._wished(link.query_of(event._data))
        named = self._named(wish)
        return [*shown(traces.show_race(request.session_hash, TAB, named[0])), *named]

    def _named(self, wish: Mapping) -> list:
        """Return the values of the controls for these values of an address. The first two are both the name of the
        example that the address matches, for the two components that show it; "" if the address matches no example."""
        first, preset = next(iter(self.races)), wish.get("preset")
        base = self.races[preset or first]
        values = {**base, **wish}
        own = ("prompt", "lanes", "models")
        same = all(link.alike(values[part], base[part]) for part in own)
        name = (preset or first) if same else ""
        return [name, name, *self._set(values)]

    def _show_earlier(self, request: gr.Request, event: gr.EventData) -> tuple:
        """Return the updates that show a finished race, unless the visitor has a race of their own.

        The race is that of the example that the address matches, or the opening race if the address matches none. The
        address comes with the event, because the controls may not hold its values yet: a different event sets them.
        """
        session, wish = request.session_hash, self._wished(link.query_of(event._data))
        name = self._named(wish)[0]
        text = race_made_earlier(name) if name else opening_race()
        if not text or live.seats.get(session, TAB):
            return shown(None)
        return shown(traces.show(session, TAB, text, words.COMPARE_HINT))

    def _open(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the updates that show the race in a visitor's file, and that set the controls to the race's settings,
        as far as this page has them."""
        update = traces.open_file(request.session_hash, TAB, event._data, traces.check_race)
        if update[0] is None:
            return [*shown(update), *[gr.skip()] * (2 + len(FIELDS))]
        lanes = read_race(update[0], LIMITS.lanes)
        wish = self._wished(link.wish_of_race(lanes.values(), self.offer))
        return [*shown(update), "", "", *self._set(wish)]

    def _wished(self, query: Mapping[str, str]) -> dict:
        return link.read_race(query, self.races, self.offer)

    def _set(self, values: dict) -> list:
        """Return values for the controls, in the order of FIELDS; the control of the lanes stays as it is if ``values``
        has no lanes."""
        numbers = (values.get(name, RANGES[name].default) for name in RANGES)
        lanes, models = values.get("lanes", gr.skip()), values.get("models", "")
        return [values.get("prompt", ""), lanes, *numbers, models]


def _start(request: gr.Request, *values):
    session, (*values, seen) = request.session_hash, values
    fields = dict(zip(FIELDS, values, strict=True))
    make = still_there(partial(live.compare_job, session=session), session, seen)
    yield from emit(live.start(session, TAB, make, fields))


def _resume(request: gr.Request):
    yield from emit(live.resume(request.session_hash, TAB))


def _pause(request: gr.Request) -> None:
    live.ask(request.session_hash, TAB, "pause")


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))
