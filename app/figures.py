"""The plotly figures of a finished run or race, drawn when a visitor scrolls to them."""

import json
import logging

import gradio as gr

from app import live, words
from app.parts import QUICK, SLOW, html, lead
from app.speed import SPEEDS
from app.traces import export_graphml
from engine.trace import read_trace
from presets import opening_example, presets, trace_names, trace_text
from presets.checked import checked
from viz.race import split

log = logging.getLogger("draftscope")


class Panel:
    """The figures of a run or of a race. Drawing them takes the browser and the server about a second. So the figures
    are hidden and not drawn until the visitor scrolls to them."""

    room = "watch"
    names = ("accepted", "depth", "odds", "time", "tree")
    """The names of its plots, in the order of the page."""
    terms = words.RUN_FIGURES

    def __init__(self, elem_id: str) -> None:
        with gr.Column(elem_id=f"{elem_id}-place", elem_classes="pg-figures-place"):
            self.of = html(
                f"DraftscopePage.figuresOf({json.dumps(self.room)}, {{element, props, trigger, watch}}); "
                "/* events: 'asked' */",
                elem_classes="pg-figures-of",
            )
            with gr.Column(visible=False, elem_id=elem_id, elem_classes="pg-figures") as self.group:
                lead(self.terms)
                self.plots = self._lay_out()

    def _lay_out(self) -> list[gr.Plot]:
        return [_plot(name) for name in self.names]

    def wire(self) -> gr.events.Dependency:
        """Draw the figures when the page's script asks for them."""

        def draw(request: gr.Request):
            return self._update(self._text(request.session_hash))

        return self.of.asked(
            draw, None, [self.group, self.of, *self.plots], trigger_mode="multiple", **SLOW
        )

    def _text(self, session: str) -> str | None:
        """Return the trace of the visitor's finished run, or None."""
        return live.finished(session, self.room)

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
    """The figures of one run, its mean tree last, and ``proof``, the result of comparing the run with plain
    decoding."""

    def __init__(self, elem_id: str) -> None:
        super().__init__(elem_id)
        self.proof = html(
            "DraftscopePage.proof({props, trigger, watch}); /* events: 'asked' */",
            value=_told_of_example(presets()[0].name),
            elem_id="proof",
        )

    def _lay_out(self) -> list[gr.Plot]:
        plots = [_plot(name) for name in self.names[:-1]]
        with gr.Column(visible=False, elem_classes="pg-figure", elem_id="tree-figure") as self.tree:
            plots.append(_plot(self.names[-1]))
            html(
                "DraftscopePage.graphml({element: element.querySelector('.pg-mount'), server});",
                server_functions=[export_graphml],
            )
        return plots

    def _text(self, session: str) -> str | None:
        """Return the trace of the visitor's finished run. For a visitor without any run it is the trace of the example
        with which the page opens."""
        if live.seats.get(session, self.room) is None and trace_names():
            return trace_text(opening_example())
        return super()._text(session)

    def follow(self, event) -> None:
        """Compare the visitor's run with plain decoding after this event. event: an event after which the run may be
        over."""
        event.then(_compared, None, self.proof, **QUICK)

    def wire(self) -> gr.events.Dependency:
        self.proof.asked(_compared, None, self.proof, **QUICK)

        def frame(request: gr.Request):
            text = self._text(request.session_hash)
            if text is None:
                return gr.skip()
            return gr.Column(visible=bool(read_trace(text).summary["acceptance_by_depth"]))

        return super().wire().then(frame, None, self.tree, **SLOW)


class RacePanel(Panel):
    """The figures of a race. The table of the race is part of the picture, not of these figures."""

    room = "compare"
    names = ("speed", "accepted")
    terms = words.RACE_FIGURES

    def _figures(self, text: str) -> dict:
        from viz import figures

        return figures.race_figures({lane: read_trace(own) for lane, own in split(text).items()})


def _plot(name: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_classes=f"pg-plot-{name}")


def _compared(request: gr.Request):
    """Return the comparison of the visitor's finished run with plain decoding, as JSON for the page's script.

    An example was compared when its trace was made. A run made here is compared in the background, and the script calls
    again until the result is there.
    """
    session = request.session_hash
    seat = live.seats.get(session, "watch")
    if seat is None or seat.state != "done":
        return gr.skip()
    if example := getattr(seat.job, "example", ""):
        return _told_of_example(example)
    return _told(read_trace(seat.text).summary["text"], **SPEEDS.ask(session, seat))


def _told(text: str, checked: dict | None, measuring: bool = False) -> str:
    """Return, as JSON for the page's script, how the run that wrote this text compares with plain decoding."""
    return json.dumps({"of": text, "checked": checked, "measuring": measuring})


def _told_of_example(name: str) -> str:
    if name not in trace_names():
        return _told("", None)
    return _told(read_trace(trace_text(name)).summary["text"], checked().get(name))
