"""A request that no handler could read is answered with a sentence, not with a broken connection."""

import logging

from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("draftscope")
NONSENSE = "This page cannot make sense of that request."


class Guard:
    """An ASGI layer. An exception before the first byte of an answer becomes status 400. The log gets the kind of
    exception, not the content of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            log.warning("a request was refused: %s", type(error).__name__)
            refusal = JSONResponse({"error": NONSENSE}, 400)
            await refusal(scope, receive, send)


def middleware() -> list[Middleware]:
    """For ``app_kwargs`` of gradio's launch."""
    return [Middleware(Guard)]
