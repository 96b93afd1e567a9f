"""Every failure of an event is told in a sentence.

Gradio answers ``{"error": null}`` to an exception that is not its own, and prints the traceback; a stranger who sends
nonsense could fill the log with them. A program that was written before an endpoint took another value gets that value's
default: gradio has defaults for its own clients only.
"""

from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.components.api_component import Api

from app.refusals import NONSENSE, note_failure


def in_sentences(page: gr.Blocks) -> None:
    """Let this page's events fail in sentences only, however they are called."""
    work = page.process_api

    async def process_api(block_fn, inputs, *arguments, **named):
        try:
            return await work(block_fn, _whole(block_fn, inputs), *arguments, **named)
        except gr.Error as error:
            error.print_exception = False
            raise
        except Exception as error:  # noqa: BLE001
            note_failure(error)
            raise gr.Error(NONSENSE, print_exception=False) from None

    page.process_api = process_api


def _whole(endpoint: BlockFunction | int, values: list[Any]) -> list[Any]:
    """The values of a call, and the defaults of those that it leaves out at the end."""
    if isinstance(endpoint, int):
        return values
    missing = endpoint.inputs[len(values) :]
    if not all(isinstance(each, Api) for each in missing):
        return values
    return [*values, *(each.value for each in missing)]
