"""The Learn tab: lessons with the page's own pictures, and runs that their readers start."""

import gradio as gr

from app import live, words
from app.lessons import TAB, job, learn_lesson, learn_page, learn_shelf, learn_trace
from app.parts import QUICK, canvas, emit, engine_event, html, lead, over, shown


class Learn:
    """The components of the Learn tab: the list of lessons, or the open lesson. ``wire`` attaches the events of
    runs."""

    def __init__(self) -> None:
        lead(words.LEARN_LEAD)
        self.said, self.view = canvas(TAB, "")
        self.room = html(
            "DraftscopePage.learn({element: element.querySelector('.pg-mount'), props, trigger, "
            "server}); /* events: 'asked' */",
            shelf=learn_shelf(),
            server_functions=[learn_lesson, learn_trace, learn_page],
            elem_id="learn",
        )
        with gr.Column(elem_classes="pg-hidden"):
            self.said.render()
            self.view.render()

    def wire(self) -> None:
        canvas_out = [self.view, self.said]
        run = self.room.asked(_start, None, canvas_out, **engine_event())
        run.then(None, js=over(TAB))
        run.failure(None, js=over(TAB))
        self.said.ask_stop(_stop, None, canvas_out, **QUICK)


def _start(request: gr.Request, event: gr.EventData):
    wish = event._data if isinstance(event._data, dict) else {}
    yield from emit(live.start(request.session_hash, TAB, job, wish))


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))
