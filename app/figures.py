"""What is shown when a run or a race has come to its end: plotly figures, and the race's table."""

import logging

import gradio as gr

from app import live
from app.parts import SLOW, html
from app.race import split
from app.standings import as_json, standings
from engine.trace import read_trace

log = logging.getLogger("draftscope")


class Panel:
    """The figures of a run; hidden until there is one."""

    count = 5

    def __init__(self, elem_id: str) -> None:
        self.extra: list = []
        self._before()
        with gr.Column(visible=False, elem_id=elem_id, elem_classes="pg-figures") as self.group:
            self.plots = [
                gr.Plot(show_label=False, container=False, elem_classes="pg-plot")
                for _ in range(self.count)
            ]

    def follow(self, event, tab: str) -> None:
        """Draw once this event has brought a run to its end."""

        def draw(request: gr.Request):
            return self._update(live.finished(request.session_hash, tab))

        event.then(draw, None, [*self.extra, self.group, *self.plots], **SLOW)

    def _update(self, text: str | None) -> list:
        if text is None:
            return [gr.skip()] * (len(self.extra) + 1 + self.count)
        try:
            extra, drawn = self._draw(text)
        except Exception:
            log.exception("the figures could not be drawn")
            extra, drawn = [gr.skip()] * len(self.extra), []
        drawn = [*drawn, *[None] * self.count][: self.count]
        return [*extra, gr.Column(visible=any(drawn)), *drawn]

    def _before(self) -> None:
        """Components that stand above the figures."""

    def _draw(self, text: str) -> tuple[list, list]:
        """Values for the components above, and the figures."""
        from viz import figures

        return [], figures.run_figures(read_trace(text))


class RacePanel(Panel):
    """The table and the figures of a race."""

    count = 2

    def _before(self) -> None:
        self.extra = [
            html("DraftscopePage.results({element, props, watch});", value="", elem_id="results")
        ]

    def _draw(self, text: str) -> tuple[list, list]:
        from viz import figures

        traces = {lane: read_trace(own) for lane, own in split(text).items()}
        return [as_json(standings(traces, live.PLAIN))], figures.race_figures(traces)
