"""The plotly figures that are shown when a run or a race has come to its end."""

import logging

import gradio as gr

from app import live
from app.parts import SLOW
from app.race import split
from engine.trace import read_trace

log = logging.getLogger("draftscope")


class Panel:
    """The figures of a run; hidden until there is one."""

    count = 5

    def __init__(self, elem_id: str) -> None:
        with gr.Column(visible=False, elem_id=elem_id, elem_classes="pg-figures") as self.group:
            self.plots = [gr.Plot(show_label=False, container=False) for _ in range(self.count)]

    def follow(self, event, tab: str) -> None:
        """Draw once this event has brought a run to its end."""

        def draw(request: gr.Request):
            return self._update(live.finished(request.session_hash, tab))

        event.then(draw, None, [self.group, *self.plots], **SLOW)

    def _update(self, text: str | None) -> list:
        if text is None:
            return [gr.skip()] * (1 + self.count)
        try:
            drawn = self._figures(text)[: self.count]
        except Exception:
            log.exception("the figures could not be drawn")
            drawn = []
        blank = [gr.Plot(visible=False)] * (self.count - len(drawn))
        shown = [gr.Plot(value=figure, visible=True) for figure in drawn]
        return [gr.Column(visible=bool(drawn)), *shown, *blank]

    def _figures(self, text: str) -> list:
        from viz import figures

        return figures.run_figures(read_trace(text))


class RacePanel(Panel):
    """The figures of a race; its table belongs to the picture."""

    count = 2

    def _figures(self, text: str) -> list:
        from viz import figures

        return figures.race_figures({lane: read_trace(own) for lane, own in split(text).items()})
