"""What one stranger can do to a server, and to its other visitors: nothing, in one sentence each."""

import itertools
import re
import time

import httpx
import pytest

from app.settings import LIMITS
from tests.app.stranger import RUN, Stranger, answered, said
from tests.app.wire import PREFIX, Wire

LENGTHS = itertools.count(2)
HEAD = "POST /gradio_api/queue/join HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
MEGABYTE = b"a" * 1_000_000


@pytest.fixture
def stranger(server):
    """Yield a stranger, in each test from another address."""
    found = Stranger(server.url, f"127.0.0.{next(LENGTHS)}")
    yield found
    found.http.close()


def works(server, address: str) -> None:
    """Assert that a visitor at this address can make a run."""
    visitor = Wire(server.url, address)
    assert list(visitor.run("Once upon a time", "none", 2))[-1][1] == "done"
    visitor.leave()


def chunked(size: int):
    for _ in range(size):
        yield b"%x\r\n" % len(MEGABYTE) + MEGABYTE + b"\r\n"


@pytest.mark.parametrize(
    "declared", ["Content-Length: 300000000\n", "Transfer-Encoding: chunked\n"]
)
def test_a_large_body_is_cut_off(stranger, declared):
    parts = chunked(300) if "chunked" in declared else itertools.repeat(MEGABYTE, 300)
    connection, sent = stranger.raw(f"{HEAD}{declared}\n", parts)
    assert sent <= 40_000_000, "more than the system's own buffers hold"
    status, told = answered(connection)
    assert status in (0, 413) and (not told or "MB" in told)


@pytest.mark.parametrize("path", ["/", "/gradio_api/heartbeat/abc", "/health"])
def test_what_asks_for_no_body_takes_none(stranger, path):
    head = f"GET {path} HTTP/1.1\nHost: localhost\nContent-Length: 100000000000\n\n"
    assert answered(stranger.raw(head)[0])[0] == 400


def test_small_text_that_becomes_large_once_it_is_read_is_refused(stranger):
    body = b'{"fn_index": 1, "session_hash": "a", "data": [' + b"{}," * 1_000_000 + b"1]}"
    headers = {"content-type": "application/json"}
    answer = stranger.http.post(f"{PREFIX}/queue/join", content=body, headers=headers)
    assert answer.status_code == 413 and said(answer)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/upload"), ("GET", "/upload_progress?upload_id=a"), ("GET", "/file=app.py"), ("GET", "/proxy=http://a/"),
        ("POST", "/process_recording"), ("POST", "/vibe-edit"), ("GET", "/vibe-code"), ("GET", "/deep_link"),
        ("POST", "/stream/a"), ("GET", "/runs"), ("GET", "/dev/reload"), ("PUT", "/queue/join"), ("OPTIONS", "/queue/join"),
    ],
)  # fmt: skip
def test_what_the_page_does_not_need_is_closed(stranger, method, path):
    files = {"files": {"a": b"x" * 1000}} if path == "/upload" else {}
    answer = stranger.http.request(method, PREFIX + path, **files)
    assert answer.status_code == 404 and said(answer)


@pytest.mark.parametrize("path", ["/component_server", "/run/predict", "/queue/join"])
def test_no_call_brings_files(stranger, path):
    fields = {"session_hash": "a", "component_id": "1", "fn_name": "export_page"}
    answer = stranger.http.post(PREFIX + path, data=fields, files={"a": b"x" * 1000})
    assert answer.status_code == 415 and said(answer)


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True), ("LOCALHOST:1", True), ("127.0.0.1:80", True), ("[::1]:7860", True), ("127.9.9.9", True),
        ("evil.example", False), ("localhost.evil.example", False), ("127.0.0.1.nip.io", False), ("192.168.0.1", False),
        ("evil@localhost", False), ("", False),
    ],
)  # fmt: skip
def test_a_local_server_answers_to_local_names_only(stranger, host, known):
    """Another name may be an attacker's, who points it at this machine (DNS rebinding)."""
    for path in ("/", "/config", "/health", f"{PREFIX}/info"):
        answer = stranger.http.get(path, headers={"host": host})
        assert (answer.status_code == 200) == known
        if not known:
            assert said(answer)


FOREIGN = [
    {"origin": "https://other.example"},
    {"origin": "null"},
    {"origin": "http://localhost:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://localhost:1"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_site_can_send_nothing_and_read_nothing(stranger, headers):
    for answer in (
        stranger.post("/call/run", {"data": RUN}, headers=headers),
        stranger.post("/cancel", {}, headers=headers),
        stranger.http.get(f"{PREFIX}/info", headers=headers),
    ):
        assert answer.status_code == 403 and said(answer)
    page = stranger.http.get("/", headers=headers)
    assert page.status_code == 200, "a link to the page, or a frame of it"
    assert not [name for name in page.headers if name.startswith("access-control")]


def test_the_page_itself_may_send(server, stranger):
    body = {"data": [], "fn_index": stranger.function("methods"), "session_hash": "abc"}
    for headers in ({"origin": server.url}, {"sec-fetch-site": "same-origin"}, {}):
        assert stranger.post("/run/methods", {**body, "data": [""]}, headers=headers).is_success


def test_callers_without_a_session_do_not_share_one(stranger, wire):
    said_so, read = (wire.event("own-models", name)["id"] for name in ("adjust", "fresh"))
    body = {"data": [], "fn_index": said_so, "event_data": {"system": "SECRET", "chat": True}}
    assert "SECRET" in stranger.post("/run/predict", body).text
    for session in ({}, {"session_hash": None}):
        other = stranger.post("/run/predict", {"data": [], "fn_index": read, **session})
        assert other.is_success and "SECRET" not in other.text


def test_runs_cannot_be_begun_around_the_queue(stranger, wire):
    begin = wire.event("run", "click")["id"]
    values = wire.watch_values("Once", "none", 8)
    for name, body in (("run", {"data": RUN}), ("predict", {"fn_index": begin, "data": values})):
        for route in ("run", "api"):
            assert "queue" in said(stranger.post(f"/{route}/{name}", body))


def test_private_functions_are_no_endpoints(stranger, wire):
    values = wire.watch_values("Once", "none", 8)
    name = wire.event("run", "click")["api_name"]
    assert "no endpoint" in said(stranger.post(f"/call/{name}", {"data": values}))


NONSENSE = [
    ("/run/predict", {}),
    ("/run/predict", []),
    ("/run/predict", {"data": []}),
    ("/run/predict", {"data": [], "fn_index": 9999}),
    ("/run/predict", {"data": 7, "fn_index": 1}),
    ("/run/predict", {"data": [], "fn_index": "\ud800"}),
    ("/run/predict", {"data": [], "fn_index": 1, "session_hash": 7}),
    ("/run/predict", {"data": [], "fn_index": 1, "session_hash": "../" * 99}),
    ("/run/methods", {"data": 7}),
    ("/queue/join", {"data": [], "fn_index": 1}),
    ("/queue/join", {"data": [], "fn_index": 9999, "session_hash": "a"}),
    ("/queue/join", {"data": [], "fn_index": None, "session_hash": "a"}),
    ("/call/nothing", {"data": []}),
    ("/call/v2/nothing", {}),
    ("/call/v2/run", {"strange": 1}),
    ("/component_server", {"session_hash": "a", "component_id": 1, "fn_name": "x", "data": []}),
    ("/component_server", {"session_hash": "a", "component_id": -1, "fn_name": "x", "data": 1}),
    ("/cancel", {"session_hash": "a"}),
]


@pytest.mark.parametrize(("path", "body"), NONSENSE, ids=str)
def test_nonsense_is_answered_with_a_sentence(stranger, path, body):
    assert "Traceback" not in said(stranger.post(path, body))


def test_an_event_that_fails_says_so_in_a_sentence(stranger, wire):
    """gradio's own answer is {"error": null}."""
    event = {"id": wire.event("run", "click")["id"], "targets": [[1, "click"]]}
    with pytest.raises(RuntimeError) as told:
        list(wire.hear(wire.send(event, [])))
    assert re.fullmatch(r"[A-Z].*\.", str(told.value))


def test_answers_to_events_that_never_were(stranger):
    assert said(stranger.http.get(f"{PREFIX}/call/run/abc"))


def test_requests_whose_answer_nobody_reads_keep_nobody_out(server, stranger):
    told = {answer.status_code for answer in stranger.unread(60)}
    assert told <= {200, 429}
    begun = time.monotonic()
    works(server, "127.0.0.200")
    works(server, stranger.address)
    assert time.monotonic() - begun < 60
    metrics = httpx.get(f"{server.url}/metrics").text
    assert "vllm:num_requests_waiting 0.0" in metrics


def test_a_heartbeat_is_no_reader(stranger):
    """Nor does its run begin, whose updates would pile up."""
    head = f"GET {PREFIX}/heartbeat/beats HTTP/1.1\nHost: localhost\n\n"
    connection, _ = stranger.raw(head)
    assert connection.recv(1000)
    asked = stranger.post("/call/run", {"data": RUN, "session_hash": "beats"})
    time.sleep(LIMITS.unread_seconds + 3)
    answer = stranger.http.get(f"{PREFIX}/call/run/{asked.json()['event_id']}").text
    connection.close()
    assert "generating" not in answer and "Nobody read the answer" in answer


def test_pages_that_nobody_reads_keep_no_neighbour_waiting(server, stranger):
    """Asked for on one connection, one behind the other, until the system holds no more of them."""
    connection, _ = stranger.raw("GET / HTTP/1.1\nHost: localhost\n\n" * 20)
    time.sleep(3)
    assert stranger.http.get("/", timeout=10).is_success
    connection.close()


def test_a_request_whose_answer_is_read_later_is_made(stranger):
    event = stranger.post("/call/run", {"data": [*RUN[:9], 4, *RUN[10:]]}).json()["event_id"]
    time.sleep(1)
    answer = stranger.http.get(f"{PREFIX}/call/run/{event}").text
    assert "event: complete" in answer and "summary" in answer


def test_limits_are_told(server):
    told = httpx.get(f"{server.url}/health").json()["limits"]
    assert told["client_running"] == LIMITS.client_running
    assert told["body_megabytes"] == LIMITS.body_megabytes


def test_no_stranger_fills_the_log(server, stranger):
    """Last in this file, so that all of the above has been tried."""
    before = len(server.log())
    for _ in range(100):
        stranger.post("/run/predict", {"data": [], "fn_index": 9999})
    log = server.log()
    assert "Traceback" not in log[before:] and 'File "' not in log[before:]
    assert 1 <= log.count("refused: status-") + log.count("refused: failed") < 100
    assert "draftscope_turned_away_total" in httpx.get(f"{server.url}/metrics").text
