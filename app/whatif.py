"""“What if …” on the Watch tab: the finished run again, with something changed, beside the first."""

from functools import partial

import gradio as gr

from app import again, live
from app.parts import QUICK, canvas, emit, engine_event, html, over, shown

TAB = again.WHAT_IF


class WhatIf:
    """The form, the status line, and the two runs; ``wire`` gives them events."""

    def __init__(self) -> None:
        self.said, self.view = canvas(TAB, "")
        self.form = html(
            "DraftscopePage.whatIf({element: element.querySelector('.pg-mount'), props, trigger}); "
            "/* events: 'asked' */",
            elem_id="whatif",
        )
        self.said.render()
        self.view.render()

    def wire(self) -> None:
        canvas_out = [self.view, self.said]
        run = self.form.asked(_start, None, canvas_out, **engine_event())
        run.then(None, js=over(TAB))
        run.failure(None, js=over(TAB))
        self.said.ask_stop(_stop, None, canvas_out, **QUICK)


def _start(request: gr.Request, event: gr.EventData):
    wish = event._data if isinstance(event._data, dict) else {}
    make = partial(again.what_if_job, session=request.session_hash)
    yield from emit(live.start(request.session_hash, TAB, make, wish))


def _stop(request: gr.Request):
    return shown(live.stop(request.session_hash, TAB))
