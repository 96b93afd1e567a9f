"""Answers that nobody reads, or that are read slower than they are made: they take a bounded part of the memory."""

import asyncio
import tracemalloc
from contextlib import ExitStack
from dataclasses import replace

import fastapi
import gradio as gr
import pytest
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Event
from gradio.server_messages import ProcessCompletedMessage, ProcessGeneratingMessage

from app.settings import LIMITS
from app.shares import TOO_MUCH, UNREAD, Shares
from app.unread import Waiting
from app.visitors import Visitors
from tests.app.awaiting import asynchronous

TEXT = 500_000
MOST = replace(LIMITS, unread_megabytes=8, trace_megabytes=1)
"""8 MB, and 2 MB for one address."""


class House:
    """A page with gradio's own queue, whose visitors all read, but slowly. Messages that they have not read stay in the
    queue."""

    def __init__(self, open_streams: ExitStack) -> None:
        with gr.Blocks() as page:
            gr.api(lambda: "", api_name="run")
        page.queue()
        self.queue, self.visitors, self._open = page._queue, Visitors(), open_streams
        self.shares = Shares(page, self.visitors, MOST)

    async def asks(self, session: str, address: str, simple: bool = False) -> Event:
        self._open.enter_context(self.visitors.reading(session, address))
        scope = {"type": "http", "path": "/queue/join", "headers": [], "client": (address, 1)}
        request = fastapi.Request(scope)
        body = PredictBodyInternal(
            session_hash=session, fn_index=0, data=[], simple_format=simple, request=request
        )
        success, event_id, _ = await self.shares.push(body, request, None)
        assert success
        return self.queue.event_ids_to_events[event_id]

    def says(self, event: Event, text: str) -> None:
        output = {"data": [text], "is_generating": True}
        self.queue.send_message(event, ProcessGeneratingMessage(output=output, success=True))

    async def ends(self, event: Event) -> None:
        """End this event as a cancelled event ends."""
        await self.queue.remove_from_queue(event._id)
        self.queue.send_message(event, ProcessCompletedMessage(output={}, success=True))

    def unread(self, session: str) -> list:
        """Read and return all unread messages of this session."""
        waiting = self.queue.pending_messages_per_session[session]
        told = []
        while not waiting.empty():
            told.append(waiting.get_nowait())
        return told

    def bytes(self) -> int:
        """Return how many bytes the texts of all unread messages have; this reads them."""
        found = self.queue.pending_messages_per_session
        return sum(
            len(message.output["data"][0])
            for session in list(found)
            for message in self.unread(session)
            if isinstance(message, ProcessGeneratingMessage)
        )


@pytest.fixture
def house():
    with ExitStack() as open_streams:
        yield House(open_streams)


@asynchronous
async def test_updates_that_hold_the_whole_so_far_wait_once(house):
    one, other = [await house.asks("s", "a", simple=True) for _ in range(2)]
    for number in range(100):
        house.says(one, f"{number:{TEXT}}")
    house.says(other, "x")
    assert (one.alive, other.alive) == (True, True)
    told = [m for m in house.unread("s") if isinstance(m, ProcessGeneratingMessage)]
    assert [message.event_id for message in told] == [one._id, other._id]
    assert int(told[0].output["data"][0]) == 99
    house.says(one, "read, and there is more")
    assert house.unread("s")[-1].output["data"] == ["read, and there is more"]


@asynchronous
async def test_one_address_lets_so_much_lie_unread_and_no_more(house):
    good = await house.asks("good", "b")
    house.says(good, "x" * TEXT)
    bad = [await house.asks(f"bad{number}", "a") for number in range(8)]
    for _ in range(4):
        for event in bad:
            house.says(event, "x" * TEXT)
    assert good.alive and not all(event.alive for event in bad)
    over = next(event for event in bad if not event.alive)
    last = house.unread(over.session_hash)[-1]
    assert isinstance(last, ProcessCompletedMessage) and not last.success
    assert last.event_id == over._id and last.output == {"error": TOO_MUCH}
    assert len(house.unread("good")[-1].output["data"][0]) == TEXT
    assert house.bytes() <= MOST.unread_bytes // 4


@asynchronous
async def test_all_addresses_together_let_so_much_lie_unread(house):
    events = [await house.asks(f"s{number}", f"10.0.0.{number}") for number in range(20)]
    for _ in range(3):
        for event in events:
            house.says(event, "x" * TEXT)
    assert house.bytes() <= MOST.unread_bytes
    assert any(event.alive for event in events)


@asynchronous
async def test_what_was_read_makes_room(house):
    event = await house.asks("s", "a")
    for _ in range(20):
        house.says(event, "x" * TEXT)
        await asyncio.sleep(0)
        house.unread("s")
    assert event.alive


@asynchronous
async def test_one_session_asks_for_so_much_without_reading_the_answers(house):
    most = 4 * (LIMITS.client_running + LIMITS.client_waiting)
    for _ in range(most):
        await house.ends(await house.asks("s", "a"))
    with pytest.raises(fastapi.HTTPException, match="not read yet") as told:
        await house.asks("s", "a")
    assert told.value.status_code == 429
    await house.asks("another", "a")
    house.shares._give_up("s")
    assert len(house.unread("s")) == most
    await house.asks("s", "a")
    assert len(house.queue.pending_event_ids_session["s"]) == 1, "nothing else is unread"


@asynchronous
async def test_an_address_has_so_many_requests_under_way_and_no_more(house):
    most = LIMITS.client_running + LIMITS.client_waiting
    first, *_ = [await house.asks(f"s{number}", "a") for number in range(most)]
    with pytest.raises(fastapi.HTTPException, match="under way") as told:
        await house.asks("more", "a")
    assert told.value.status_code == 429
    await house.asks("another", "b")
    await house.ends(first)
    await house.asks("more", "a")


def test_a_small_message_counts_for_what_it_takes():
    waiting, count = Waiting(), 2000
    tracemalloc.start()
    try:
        for number in range(count):
            over = ProcessCompletedMessage(output={"error": UNREAD}, success=False)
            over.event_id = f"{number:032}"
            waiting.put_nowait(over)
        assert tracemalloc.get_traced_memory()[0] <= 1.1 * waiting.bytes
    finally:
        tracemalloc.stop()
