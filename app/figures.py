"""The plotly figures that are shown when a run or a race has ended."""

import json
import logging
from functools import cache

import gradio as gr

from app import live, words
from app.again import PLAIN, measure_plain, worth_measuring
from app.parts import QUICK, SLOW, engine_event, html, lead, never_silent, status
from app.traces import export_graphml
from engine.trace import read_trace
from presets import preset, presets, race_files, races, trace_files
from presets.checked import checked, compare
from presets.conditions import finished
from viz.race import split

log = logging.getLogger("draftscope")
NEXT = "Plain decoding of the same prompt is measured next."


class Panel:
    """The figures of a run; hidden until there is one."""

    room = "watch"
    names = ("accepted", "depth", "odds", "time", "tree")
    """The names of its plots, in the order of the page."""
    terms = words.RUN_FIGURES

    def __init__(self, elem_id: str) -> None:
        with gr.Column(visible=False, elem_id=elem_id, elem_classes="pg-figures") as self.group:
            lead(self.terms)
            self.of = html(
                f"DraftscopePage.figuresOf({json.dumps(self.room)}, {{element, props, watch}});",
                elem_classes="pg-hidden",
            )
            self.plots = self._lay_out()

    def _lay_out(self) -> list[gr.Plot]:
        return [_plot(name) for name in self.names]

    def follow(self, event, tab: str) -> gr.events.Dependency:
        """Draw once this event has brought a run to its end."""

        def draw(request: gr.Request):
            session = request.session_hash
            text, seat = live.finished(session, tab), live.seats.get(session, tab)
            if text is not None and not seat.figures:
                seat.figures = "drawn"
            return self._update(text)

        return event.then(draw, None, [self.group, self.of, *self.plots], **SLOW)

    def _update(self, text: str | None) -> list:
        if text is None:
            return [gr.skip()] * (2 + len(self.names))
        try:
            drawn = self._figures(text)
        except Exception:
            log.exception("the figures could not be drawn")
            drawn = {}
        plots = [
            gr.Plot(value=drawn[name], visible=True) if name in drawn else gr.Plot(visible=False)
            for name in self.names
        ]
        return [gr.Column(visible=bool(drawn)), text.rstrip().rpartition("\n")[2], *plots]

    def _figures(self, text: str) -> dict:
        from viz import figures

        return figures.run_figures(read_trace(text))


class RunPanel(Panel):
    """The figures of one run: first its speed beside plain decoding, last its mean tree."""

    def __init__(self, elem_id: str) -> None:
        super().__init__(elem_id)
        self.proof = html(
            "DraftscopePage.proof({props, watch});",
            value=_proof_of_example(presets()[0].name),
            elem_id="proof",
        )

    def _lay_out(self) -> list[gr.Plot]:
        with gr.Column(
            visible=False, elem_classes="pg-figure", elem_id="speed-figure"
        ) as self.speed:
            self.said = html(
                "DraftscopePage.plain({element: element.querySelector('.pg-mount'), props, trigger, "
                "watch}); /* events: 'asked' 'halt' */",
                value=status("done"),
            )
            self.bars = _plot("speed")
        plots = [_plot(name) for name in self.names[:-1]]
        with gr.Column(visible=False, elem_classes="pg-figure", elem_id="tree-figure") as self.tree:
            plots.append(_plot(self.names[-1]))
            html(
                "DraftscopePage.graphml({element: element.querySelector('.pg-mount'), server});",
                server_functions=[export_graphml],
            )
        return plots

    def follow(self, event, tab: str) -> gr.events.Dependency:
        def prove(request: gr.Request):
            """Show the comparison of an example, made with its trace, before its figures are drawn."""
            session = request.session_hash
            seat = live.seats.get(session, tab)
            if seat is None or live.seats.get(session, PLAIN):
                return gr.skip()
            return _proof_of_example(getattr(seat.job, "example", ""))

        event.then(prove, None, self.proof, **QUICK)
        drawn = super().follow(event, tab)
        speed = [self.speed, self.said, self.bars]

        def frame(request: gr.Request):
            """Make room for the figures of this run, and show none of the last run's.

            Several events may see the end of one run, and one of them may be between its own steps at that moment, so
            the run's seat keeps track of how far the figures have come.
            """
            seat = live.seats.get(request.session_hash, tab)
            if seat is None or seat.figures != "drawn":
                return [gr.skip()] * 4
            seat.figures = "framed"
            own = worth_measuring(seat)
            tree = bool(read_trace(seat.text).summary["acceptance_by_depth"])
            return [
                gr.Column(visible=tree),
                gr.Column(visible=own),
                status("next", NEXT),
                gr.Plot(visible=False),
            ]

        def measure(request: gr.Request):
            seat = live.seats.get(request.session_hash, tab)
            ready = seat is not None and seat.figures == "framed"
            updates = _measure(request) if ready else ()
            yield from never_silent(updates, outputs=3)

        framed = drawn.then(frame, None, [self.tree, *speed], **SLOW)
        return framed.then(measure, None, [*speed[1:], self.proof], **engine_event())

    def wire(self) -> None:
        speed = [self.said, self.bars, self.proof]
        self.said.asked(_measure_now, None, speed, **engine_event())
        self.said.halt(_halt, None, None, **QUICK)


class RacePanel(Panel):
    """The figures of a race; its table belongs to the picture."""

    room = "compare"
    names = ("speed", "accepted")
    terms = words.RACE_FIGURES

    def _figures(self, text: str) -> dict:
        from viz import figures

        return figures.race_figures({lane: read_trace(own) for lane, own in split(text).items()})


def _plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_classes=f"pg-plot-{name}")


def _measure(request: gr.Request, asked: bool = False):
    """Plain decoding measured beside the visitor's run: yields the status line, the figure and the proof."""
    from viz import figures

    def shown(state: str, message: str, pair: tuple | None) -> tuple:
        if not pair:
            return status(state, message), gr.skip(), gr.skip()
        figure = gr.Plot(figures.speed_beside(*pair), visible=True)
        return status(state, message), figure, _proof(pair[0].summary["text"], compare(*pair))

    updates = measure_plain(request.session_hash, asked)
    yield from never_silent((shown(*update) for update in updates), outputs=3)


def _proof(text: str, told: dict | None) -> str:
    """The result of comparing the run that wrote this text with plain decoding, for the page's script."""
    return json.dumps({"of": text, "checked": told})


def _proof_of_example(name: str) -> str:
    """The same for an example's finished trace, which was compared when it was made."""
    told = checked().get(name)
    if told is None or name not in trace_files():
        return _proof("", None)
    trace = read_trace(trace_files()[name].read_text("utf-8"))
    ratio = _raced(name, trace.summary["text"])
    raced = {"ratio": ratio, "recorded": True} if ratio else {}
    return _proof(trace.summary["text"], {**told, **raced})


@cache
def _raced(name: str, text: str) -> float | None:
    """The speed of this example's run against plain decoding, from a finished race in which it is a lane and wrote this
    text; None where there is no such race."""
    example = preset(name)
    for race in races():
        # a text that ends by itself may have other limits
        same = ("prompt", "models", "temperature")
        if any(getattr(race, part) != getattr(example, part) for part in same):
            continue
        lanes = {lane.name: lane for lane in race.lanes}
        plain = next((lane for lane in lanes.values() if lane.drafter == "none"), None)
        alike = [
            lane
            for lane in lanes.values()
            if (lane.drafter, lane.options, lane.verifier)
            == (example.drafter, example.options, example.verifier)
        ]
        if plain and alike and race_files(race.name):
            one, base = (finished(race.name)[lane.name].summary for lane in (alike[0], plain))
            if one["text"] == text and base["tokens_per_second"]:
                return one["tokens_per_second"] / base["tokens_per_second"]
    return None


def _measure_now(request: gr.Request):
    yield from _measure(request, asked=True)


def _halt(request: gr.Request) -> None:
    live.ask(request.session_hash, PLAIN, "stop")
