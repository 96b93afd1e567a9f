"""Puts bounds on gradio's queue: on the events of one client, and on their unread messages.

An event begins once its visitor reads answers (``app.visitors``). Until then it is parked: it takes no thread and no
place in the line. It is dropped after some seconds, or earlier if its client or the whole server needs the room. The
unread messages of an event are bounded too (``app.unread``).
"""

import asyncio
import time
from collections.abc import Callable

import fastapi
import gradio as gr
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Event
from gradio.server_messages import (
    EventMessage,
    ProcessCompletedMessage,
    ProcessGeneratingMessage,
)

from app.refusals import note, note_failure
from app.settings import LIMITS, Limits
from app.unread import Sessions
from app.visitors import VISITORS, Visitors, client

FULL = "Your address has {} requests under way here, as many as one may; wait until one has ended."
LYING = "{} answers to what you asked for here are not read yet, as many as may be; read them before you ask for more."
UNREAD = "Nobody read the answer to that request, so it was let go; send it again."
TOO_MUCH = "Too much of what you asked for here is not read yet, so all of it was let go; read faster, or ask for less."
EVERY = 2.0
"""Seconds between two sweeps of parked events and unread answers."""
MOST_LYING = 4
"""How many requests with unread answers one session may have, in multiples of an address's share of requests."""
MOST_SESSIONS = 2000
"""Most sessions with unread messages; gradio has the same bound."""
KEPT = 30.0
"""Seconds for which the answers of a session that does not read them are kept."""


class Shares:
    def __init__(
        self, page: gr.Blocks, visitors: Visitors = VISITORS, limits: Limits = LIMITS
    ) -> None:
        self._page, self._queue = page, page._queue
        self._visitors, self._limits = visitors, limits
        self._parked: dict[str, tuple[Event, float]] = {}
        """Id of an event -> the event, and when it came; the oldest first."""
        self._left: dict[str, float] = {}
        """Session that has unread answers and does not read -> since when."""
        self._push, self._queue.push = self._queue.push, self.push
        self._send, self._queue.send_message = self._queue.send_message, self.send
        self._unread = self._queue.pending_messages_per_session = Sessions(MOST_SESSIONS)
        visitors.arrived = self._arrived
        self.woken: Callable[[], None] = lambda: None
        """Called when there is more in the queue."""

    def session_of(self, event_id: str) -> str:
        """Return the session of this event, even if only its answer is left; "" if there is no such event."""
        event = self._queue.event_ids_to_events.get(event_id)
        if event:
            return event.session_hash
        pending = self._queue.pending_event_ids_session
        return next((session for session, ids in pending.items() if event_id in ids), "")

    async def push(self, body: PredictBodyInternal, request: fastapi.Request, username):
        """Put an event into gradio's queue as gradio does, within bounds. Raises HTTPException, with a sentence: 429 if
        the client has its share already, or many unread answers; 404 if a program calls a private function."""
        function = self._page.fns.get(body.fn_index)
        if function and function.api_visibility == "private" and "/call/" in request.url.path:
            raise fastapi.HTTPException(404, "There is no endpoint of that name.")
        who = client(request.client.host if request.client else "")
        most = self._limits.client_running + self._limits.client_waiting
        if self._lying(body.session_hash, MOST_LYING * most):
            note("share")
            raise fastapi.HTTPException(429, LYING.format(MOST_LYING * most))
        if len(self._of(who)) >= most and not self._let_go_first(who):
            note("share")
            raise fastapi.HTTPException(429, FULL.format(most))
        house = self._limits.running + self._limits.waiting
        if len(self._parked) >= house:
            self._let_go_first(None)
        success, event_id, state = await self._push(body, request, username)
        event = self._queue.event_ids_to_events.get(event_id) if success else None
        if event is not None:
            self._visitors.seen(event.session_hash, who)
            if not self._visitors.reads(event.session_hash):
                self._park(event)
        return success, event_id, state

    def send(self, event: Event, message: EventMessage) -> None:
        """Send a message as gradio does, but keep the unread messages within bounds: the session with the most unread
        bytes loses its messages first."""
        waiting = self._unread.get(event.session_hash)
        if waiting is None:
            event.alive = False
        elif event.alive and _whole(event, message):
            message.event_id = event._id
            waiting.put_whole(message)
        else:
            self._send(event, message)
        if waiting and waiting.bytes > self._limits.unread_bytes // (4 * MOST_SESSIONS):
            self._bound(_client(event))

    def _bound(self, who: str) -> None:
        unread, address = self._unread.bytes(), self._visitors.address
        theirs = {session: size for session, size in unread.items() if address(session) == who}
        self._relieve(theirs, self._limits.unread_bytes // 4)
        self._relieve(self._unread.bytes(), self._limits.unread_bytes)

    def _relieve(self, unread: dict[str, int], most: int) -> None:
        while sum(unread.values()) > most:
            session = max(unread, key=unread.__getitem__)
            del unread[session]
            self._give_up(session)

    def _give_up(self, session: str) -> None:
        """Drop all messages and events of this session, and leave it one error message for each event."""
        waiting = self._unread[session]
        waiting.clear()
        for event_id in self._queue.pending_event_ids_session.get(session, ()):
            event = self._queue.event_ids_to_events.get(event_id)
            if event:
                event.alive = False  # ends with its next update, or where its turn comes
            over = ProcessCompletedMessage(output={"error": TOO_MUCH}, success=False)
            over.event_id = event_id
            waiting.put_nowait(over)
        note("unread")

    def _lying(self, session: str | None, most: int) -> bool:
        """Return whether this session has at least ``most`` events whose answers are not read yet."""
        ids = self._queue.pending_event_ids_session.get(session, ())
        if len(ids) >= most:  # gradio also keeps the ids of events whose reader left
            waiting = self._unread.get(session)
            ids &= self._queue.event_ids_to_events.keys() | (waiting.events() if waiting else set())
        return len(ids) >= most

    def _of(self, who: str) -> list[Event]:
        return [
            event for event in self._queue.event_ids_to_events.values() if _client(event) == who
        ]

    def _park(self, event: Event) -> None:
        line = self._queue.event_queue_per_concurrency_id[event.concurrency_id].queue
        if event in line:
            line.remove(event)
            self._parked[event._id] = event, time.monotonic()

    def _arrived(self, session: str) -> None:
        """Move the session's parked events into the line, because it now reads answers."""
        for event_id, (event, _) in list(self._parked.items()):
            if event.session_hash == session:
                del self._parked[event_id]
                self._queue.event_queue_per_concurrency_id[event.concurrency_id].queue.append(event)
                self.woken()

    def _let_go_first(self, who: str | None) -> bool:
        """Drop the event of this client, or (None) of any, that has been parked longest. Returns False if there is
        none."""
        for event, _ in self._parked.values():
            if who is None or event in self._of(who):
                self._let_go(event)
                return True
        return False

    def _let_go(self, event: Event) -> None:
        self._parked.pop(event._id, None)
        self._queue.event_ids_to_events.pop(event._id, None)
        self._queue.send_message(
            event, ProcessCompletedMessage(output={"error": UNREAD}, success=False)
        )
        note("unread")

    async def sweep(self) -> None:
        """Drop, every few seconds, the events and answers that nobody reads."""
        while not self._queue.stopped:
            await asyncio.sleep(EVERY)
            try:
                self._swept()
            except Exception as error:  # noqa: BLE001
                note_failure(error)

    def _swept(self) -> None:
        now, queue = time.monotonic(), self._queue
        for event, came in list(self._parked.values()):
            if now - came > self._limits.unread_seconds:
                self._let_go(event)
        busy = {event.session_hash for event in queue.event_ids_to_events.values()}
        sessions = {*queue.pending_messages_per_session, *queue.pending_event_ids_session}
        away = {visitor for visitor in sessions - busy if not self._visitors.reads(visitor)}
        self._left = {visitor: self._left.get(visitor, now) for visitor in away}
        for session in [visitor for visitor, since in self._left.items() if now - since > KEPT]:
            queue.pending_messages_per_session.pop(session, None)
            queue.pending_event_ids_session.pop(session, None)


def _client(event: Event) -> str:
    return client(event.request.client.host if event.request.client else "")


def _whole(event: Event, message: EventMessage) -> bool:
    """Return whether this update holds all that the event sent before. Programs that call by name get such updates;
    other clients get the changes only."""
    simple = event.data is not None and event.data.simple_format
    return simple and isinstance(message, ProcessGeneratingMessage)
