"""How fast the requests of one address are worked on."""

import pytest

from app.guard import Guard
from app.origins import origins
from app.rates import MOST, SAVED, Rates
from app.settings import Limits
from tests.app.awaiting import awaited


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_saved_up_is_worked_on_at_once_and_more_waits():
    clock = Clock()
    rates = Rates(10, clock)
    assert [rates.wait("a") for _ in range(int(10 * SAVED))] == [0.0] * int(10 * SAVED)
    assert [rates.wait("a") for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    assert rates.wait("b") == 0, "another address has its own"
    clock.now += 1.3
    assert rates.wait("a") == 0, "ten more in a second"
    clock.now += 1000
    rates.wait("a", 10 * SAVED)
    assert rates.wait("a") == pytest.approx(0.1), "no more than that is ever saved up"


def test_dear_requests_cost_more():
    rates = Rates(10, Clock())
    rates.wait("a", 10 * SAVED)
    assert rates.wait("a", 5) == pytest.approx(0.5)


def test_addresses_that_ask_for_nothing_are_forgotten():
    clock = Clock()
    rates = Rates(10, clock)
    rates.wait("busy", 1000)
    for number in range(3 * MOST):
        clock.now += 0.001
        rates.wait(str(number), 0.001)
    assert len(rates) <= MOST + 1 and rates.wait("busy", 0) > 0


def asked(guard: Guard, who: str, path: str, method: str = "GET") -> int:
    """Send this request through the guard, and return the status of its answer."""
    statuses = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": (who, 1),
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    awaited(guard(scope, receive, send))
    return statuses[0]


def test_a_flood_waits_whatever_becomes_of_it_and_others_do_not(monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr("app.guard.asyncio.sleep", sleep)
    guard = Guard(page, origins(), limits=Limits(client_rate=2))
    for path, status in [("/", 200), ("/nowhere", 404), ("/config", 200)]:
        for _ in range(int(6 * SAVED)):
            assert asked(guard, "10.0.0.1", path) == status
    assert len(waited) > 30 and max(waited) > 10
    waited.clear()
    for _ in range(100):
        assert asked(guard, "10.0.0.2", "/assets/index.js") == 200
    assert not waited, "an asset costs little"
    for path in ("/metrics", "/nowhere", "/gradio_api/info"):
        for _ in range(20):
            asked(guard, "10.0.0.3", path)
    assert waited, "the rest has the price of a request"


def test_whoever_comes_to_read_an_answer_does_not_wait(monkeypatch):
    """The answer would be let go meanwhile."""

    async def sleep(seconds):
        raise AssertionError("it waits")

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr("app.guard.asyncio.sleep", sleep)
    guard = Guard(page, origins(), limits=Limits(client_rate=1))
    for _ in range(int(3 * SAVED)):
        assert asked(guard, "10.0.0.1", "/gradio_api/queue/data") == 200
