"""The Watch tab: it shows one run step by step, as it happens."""

from collections.abc import Iterable, Iterator, Mapping

import gradio as gr

from app import figures, growing, link, live, recorded, traces, words
from app.controls import FIELDS, RANGES
from app.live import Update
from app.menu import offer, opening, preset_menu, with_other_traces
from app.methods import Methods
from app.model_control import ModelControl
from app.own import own
from app.own_models import OwnSection, still_there
from app.own_models import shown as conversation
from app.parts import (
    EVERY,
    QUICK,
    SLOW,
    canvas,
    emit,
    engine_event,
    example_note,
    following,
    heal_box,
    html,
    lead,
    moved,
    name_whose,
    names_box,
    over,
    prompt_box,
    sampling_controls,
    schema_box,
    shown,
    state_of,
    tell_controls,
)
from app.settings import LIMITS
from engine.trace import read_trace
from presets.families import converses

TAB = "watch"


class Watch:
    """The components of the Watch tab; ``wire`` attaches their events."""

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

    def wire(self, page: gr.Blocks, methods: Methods) -> None:
        """Attach the events. methods: the tab of method cards; each card shows its example here."""
        canvas_out = [self.view, self.said]
        advance = engine_event()
        runs = [
            self.run.click(_start, [*self.fields, self.own.view], canvas_out, **advance),
            self.step.click(_step, [self.said, *self.fields, self.own.view], canvas_out, **advance),
            self.said.ask_resume(_resume, None, canvas_out, **advance),
        ]
        self.own.wire(self.numbers[:3], runs)
        self.own.come_back(self.tools.returned)
        names = [self.look_for, self.preset]
        follow = self.recorded.chosen(self._record, None, [*canvas_out, *names], **following())
        runs.append(follow)
        for run in runs:
            run.then(None, js=over(TAB))
            run.failure(None, js=over(TAB))
        example = [self.look_for, self.preset]
        controls = [*canvas_out, *example, *self.fields, self.own.view]
        loaded = page.load(self._read_address, None, controls, **QUICK)
        brought = [
            loaded,
            self.tools.opened(self._open, None, controls, **SLOW),
            self.preset.chosen(self._example_of, self.preset, controls, **QUICK),
            methods.cards.chosen(self._example_of, methods.cards, controls, **QUICK),
            self.tools.moved(self._move, None, controls, **EVERY),
        ]
        brought[-1].then(None, js=moved(TAB))
        stopped = self.said.ask_stop(_stop, None, canvas_out, **QUICK)
        for end in [*runs, stopped, *brought]:
            self.figures.follow(end)
        edits = [self.look_for.edited, self.pair.edited]
        numbers = [number.change for number in self.numbers]
        held = [control.change for control in (self.heal, self.json_schema, self.python_names)]
        named = [*edits, self.numbers[0].change, *held, self.models.change]
        shown = [
            end.then for end in (loaded, *brought[2:])
        ]  # while these events set controls, some controls still hold old values
        name_whose(TAB, [*named, *shown], [self.look_for, *self.fields], example)
        changes = [
            *edits,
            *numbers,
            *held,
            self.models.change,
            *(end.then for end in brought[1:]),
        ]
        tell_controls(TAB, loaded.then, changes, self.fields)
        self.said.ask_pause(_pause, None, None, **QUICK)
        self.pair.forget(_forget, None, None, **QUICK)
        self.tools.link(
            None, self.fields, None, js=f"(...v) => {{ DraftscopePage.link('{TAB}', v); }}"
        )
        self.model.wire(self.own.fold)
        self.prompt.submit(None, js="() => { document.getElementById('run').click(); }")
        self.figures.wire()

    def _named(self, name: str) -> list[str]:
        """Return an example's name for the two components that show it: the note, and the strip of listed examples."""
        return [name, name if name and self.presets[name]["listed"] else ""]

    def _example_of(self, name: str, request: gr.Request) -> list:
        """Return the updates that show this example's finished run and its settings; for "" only the name changes."""
        chosen = self.presets.get(name)
        if chosen is None:
            return [gr.skip()] * 2 + self._named("") + [gr.skip()] * (len(FIELDS) + 1)
        earlier = shown(traces.show_example(request.session_hash, TAB, name))
        talk = _talk(request, chosen["models"], chosen["turns"])
        return [*earlier, *self._named(name), *self._set(chosen), talk]

    def _read_address(self, request: gr.Request) -> list:
        answer = request.query_params.get("answer")
        if answer:
            return self._shown(traces.show_answer(request.session_hash, TAB, answer), request)
        wish = self._wished(request.query_params)
        if not wish:
            return [gr.skip()] * (5 + len(FIELDS))
        return self._bring(wish, request)

    def _move(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the run and the control values of the address to which Back or Forward in the browser leads."""
        first = next(iter(self.presets))
        wish = self._wished(link.query_of(event._data)) or {"preset": first}
        return self._bring(wish, request)

    def _bring(self, wish: Mapping, request: gr.Request) -> list:
        """Return the updates that set these control values, and show the finished run of their example if there is
        one."""
        first, name = next(iter(self.presets.values())), wish.get("preset", "")
        earlier = shown(traces.show_example(request.session_hash, TAB, name))
        turns = self.presets[name]["turns"] if name in self.presets else ()
        talk = _talk(request, wish.get("models", ""), turns)
        return [*earlier, *self._named(name), *self._set({**first, **wish}), talk]

    def _record(self, request: gr.Request, event: gr.EventData) -> Iterator[tuple]:
        """Yield the updates that show the recorded request that the visitor picks, as it grows."""
        name = event._data.get("name") if isinstance(event._data, dict) else None
        for update in emit(growing.show(request.session_hash, TAB, recorded.FOLDER.path, name)):
            yield (*update, *self._named(""))

    def _open(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the updates that show a visitor's trace file."""
        update = traces.open_file(request.session_hash, TAB, event._data, traces.check)
        return self._shown(update, request)

    def _shown(self, update: Update, request: gr.Request) -> list:
        """Return the updates that show a finished run, and those of its settings that this page has."""
        if update[0] is None:
            return [*shown(update), *[gr.skip()] * (3 + len(FIELDS))]
        trace = read_trace(update[0])
        wish, said = self._wished(link.wish_of(trace, self.offer)), trace.run["prompt"]
        talk = _talk(request, wish.get("models", ""), said.get("messages", ())[:-1])
        return [*shown(update), *self._named(""), *self._set(wish), talk]

    def _wished(self, query: Mapping[str, str]) -> dict:
        return link.read(query, self.presets, self.offer)

    def _set(self, values: dict) -> list:
        """Return values for the controls, in the order of FIELDS; the pair stays if ``values`` has no pair."""
        numbers = (values.get(name, RANGES[name].default) for name in RANGES)
        pair, schema = values.get("pair", gr.skip()), values.get("json_schema", "")
        prompt, heal = values.get("prompt", ""), values.get("heal", False)
        names, models = values.get("python_names", False), values.get("models", "")
        return [prompt, heal, pair, schema, names, *numbers, models]


def _talk(request: gr.Request, models: str, said: Iterable[dict[str, str]]) -> str | dict:
    """Replace the visitor's conversation by that of an example or a trace, if its models converse. Returns the update
    of the section that shows it. said: the turns."""
    if not converses(models):
        return gr.skip()
    own.begin(request.session_hash, said)
    return conversation(request.session_hash)


def _start(request: gr.Request, *values):
    session, (*values, seen) = request.session_hash, values
    make = still_there(live.watch_job(session), session, seen)
    yield from emit(live.start(session, TAB, make, _named(values)))


def _step(request: gr.Request, said: str, *values):
    """Take one step of the paused run, or the first step of a new run."""
    session, (*values, seen) = request.session_hash, values
    if state_of(said) == "paused":
        yield from emit(live.resume(session, TAB, single=True))
    else:
        make = still_there(live.watch_job(session), session, seen)
        yield from emit(live.start(session, TAB, make, _named(values), single=True))


def _resume(request: gr.Request):
    yield from emit(live.resume(request.session_hash, TAB))


def _pause(request: gr.Request) -> None:
    live.ask(request.session_hash, TAB, "pause")


def _forget(request: gr.Request) -> None:
    live.memories.leave(request.session_hash)


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))


def _named(values: tuple) -> dict[str, object]:
    return dict(zip(FIELDS, values, strict=True))
