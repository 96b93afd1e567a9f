"""Makes every failed event of the page answer with a sentence.

Gradio answers ``{"error": null}`` to an exception that is not its own, and prints the traceback; a stranger who sends
nonsense could fill the log with tracebacks. A program that was written before an endpoint gained an input gets that
input's default value: gradio fills in defaults for its own clients only.
"""

from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.components.api_component import Api

from app.refusals import NONSENSE, note_failure


def in_sentences(page: gr.Blocks) -> None:
    """Replace the page's ``process_api``, so that each failed event raises ``gr.Error`` with a sentence."""
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
    """Return the input values of a call; inputs missing at its end get their default values."""
    if isinstance(endpoint, int):
        return values
    missing = endpoint.inputs[len(values) :]
    if not all(isinstance(component, Api) for component in missing):
        return values
    return [*values, *(component.value for component in missing)]
