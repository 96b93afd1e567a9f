"""Endpoints for OpenAI's clients: /v1/models, /v1/completions and /v1/chat/completions.

A run made here is a visitor's run like any other: it waits in the same line, under the page's shares and bounds. Its
drafter is "auto", which picks at every step the draft that pays. The run goes on while the client reads slowly, and
ends once the client has left.
"""

import asyncio
import json
import logging
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app import live, openai_request, shutdown
from app.kept_answers import kept_answers
from app.made import made
from app.openai_answer import Telling
from app.openai_request import TAB, Refusal, Wish, model_names, read
from app.own import special_texts
from app.refusals import openai_error
from app.seats import FAILED, Job, Seat
from app.settings import LIMITS, model_paths
from app.visitors import VISITORS, client
from engine.errors import UserError
from engine.parts.loading import load_models

log = logging.getLogger("draftscope")

RUN = "X-Draftscope-Run"
MOST = LIMITS.client_running + LIMITS.client_waiting
"""The most requests of one address that may be under way."""
FULL = f"Your address has {MOST} requests under way here, as many as one may; wait until one has ended."
_under_way: Counter[str] = Counter()
_threads = anyio.CapacityLimiter(LIMITS.running + LIMITS.waiting)
"""Each run takes a thread from its beginning to its end."""
_writing: set[asyncio.Task] = set()

Put = Callable[[dict | Refusal | None], object]
"""Takes the next item to send: an object, a refusal in its place, or None for the end."""


async def models(_: Request) -> JSONResponse:
    about = {"object": "model", "created": 0, "owned_by": "draftscope"}
    return JSONResponse(
        {"object": "list", "data": [{"id": name, **about} for name in model_names()]}
    )


class Completions:
    """An ASGI application that answers completion requests. chat: they hold conversations instead of prompts."""

    def __init__(self, chat: bool) -> None:
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            if shutdown.closing.is_set():
                raise Refusal(shutdown.CLOSING, status=503)
            wish = read(await request.body(), self._chat)
            address = client(request.client.host if request.client else "")
            with _share(address):
                await _answer(request, wish, address, send)
        except Refusal as refusal:
            await JSONResponse(_error(refusal), refusal.status)(scope, receive, send)


@contextmanager
def _share(address: str) -> Iterator[None]:
    if _under_way[address] >= MOST:
        raise Refusal(FULL, status=429)
    _under_way[address] += 1
    try:
        yield
    finally:
        _under_way[address] -= 1
        if not _under_way[address]:
            del _under_way[address]


async def _answer(request: Request, wish: Wish, address: str, send: Send) -> None:
    """Make the run in a thread and send its answer, until the client leaves. Raises Refusal if the run is refused."""
    name, session = secrets.token_urlsafe(16), secrets.token_hex(16)
    link = f"{request.base_url}?answer={name}"
    loop, items, left = asyncio.get_running_loop(), asyncio.Queue(), threading.Event()

    def put(item: dict | Refusal | None) -> None:
        loop.call_soon_threadsafe(items.put_nowait, item)

    def write() -> None:
        if not left.is_set():
            _write(wish, Telling(wish, name, link), session, put, left)

    def leave() -> None:
        left.set()
        live.leave(session, TAB)

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        leave()
        put(None)

    writing = asyncio.create_task(anyio.to_thread.run_sync(write, limiter=_threads))
    _writing.add(writing)  # a task that nothing refers to may vanish
    writing.add_done_callback(_writing.discard)
    watching = asyncio.create_task(watch())
    try:
        with VISITORS.reading(session, address):
            await _send(items, wish, {RUN: link, "Cache-Control": "no-store"}, request, send)
    finally:
        watching.cancel()
        leave()


async def _send(
    told: asyncio.Queue, wish: Wish, headers: dict, request: Request, send: Send
) -> None:
    """Send the items of the queue as one response. Raises the first item if it is a Refusal."""
    first = await told.get()
    if isinstance(first, Refusal):
        raise first
    if first is None:
        return
    if wish.stream:
        events = _events(first, told)
        response = StreamingResponse(events, headers=headers, media_type="text/event-stream")
    else:
        response = JSONResponse(first, headers=headers)
    await response(request.scope, request.receive, send)


async def _events(item: dict | Refusal | None, told: asyncio.Queue) -> AsyncIterator[str]:
    """Yield this item and the queue's further items as server-sent events, up to the end mark."""
    while item is not None:
        yield f"data: {json.dumps(_error(item) if isinstance(item, Refusal) else item)}\n\n"
        item = await told.get()
    yield "data: [DONE]\n\n"


def _error(refusal: Refusal) -> dict:
    return openai_error(refusal.status, str(refusal), refusal.param, refusal.code)


def _write(wish: Wish, telling: Telling, session: str, put: Put, left: threading.Event) -> None:
    """Make the run and advance it to its end, in this thread. put: takes each item to send. left: is set once the
    client has left."""
    try:
        run = made(session, TAB, openai_request.job, wish.values)
        target = load_models(model_paths(wish.values["models"]), {}).target
        _advance(run, telling, special_texts(target), session, put, left)
    except Refusal as refusal:
        put(refusal)
    except UserError as error:
        put(Refusal(str(error)))
    except Exception:
        log.exception("an answer could not be written")
        put(Refusal(FAILED, status=500))
    finally:
        live.leave(session, TAB)
        put(None)


def _advance(
    run: Job, telling: Telling, marks: list[str], session: str, put: Put, left: threading.Event
) -> None:
    """Advance the run to its end and put the objects of its answer. marks: the texts of special tokens.

    Raises Refusal if the machine is full, or the run fails.
    """
    try:
        seat = live.seats.put(session, TAB, Seat(run))
    except UserError as error:
        raise Refusal(str(error), status=429) from None
    if left.is_set():
        return
    read = 0
    for trace, state, message in seat.advance():
        if state == "error":
            raise Refusal(message, status=500 if read else 429)
        if state == "done":
            kept_answers.keep(telling.name, seat.client, trace)
        for item in telling.objects(trace[read:], marks):
            put(item)
        read = len(trace)


ROUTES = [
    Route("/v1/models", models),
    Route("/v1/completions", Completions(chat=False), methods=["POST"]),
    Route("/v1/chat/completions", Completions(chat=True), methods=["POST"]),
]
