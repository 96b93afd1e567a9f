"""Every failure of an event is told in a sentence.

Gradio answers ``{"error": null}`` to an exception that is not its own, and prints the traceback; a stranger who sends
nonsense could fill the log with them.
"""

import gradio as gr

from app.refusals import NONSENSE, note_failure


def in_sentences(page: gr.Blocks) -> None:
    """Let this page's events fail in sentences only, however they are called."""
    work = page.process_api

    async def process_api(*arguments, **named):
        try:
            return await work(*arguments, **named)
        except gr.Error as error:
            error.print_exception = False
            raise
        except Exception as error:  # noqa: BLE001
            note_failure(error)
            raise gr.Error(NONSENSE, print_exception=False) from None

    page.process_api = process_api
