"""One client who means no good, beside ten visitors who do not: python -m tests.abuse --seconds 60

Starts the page, waits until it has tried all drafters, lets ten visitors (each from an address of their own, 127.0.2.1
to .10) press Run for so long while nobody else is there, and again while one client, 127.0.0.66, tries everything in ATTACKS at once. Prints for each attack how
often it was tried and what became of it, the worst memory, the worst answer of /health, the visitors' waits for their
first step, and what is left a minute later. Exit code 1 where one of the claims fails that the last lines name.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import random
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import httpx

from tests.app.serving import Server, serving
from tests.app.stranger import RUN, Stranger, answered
from tests.app.wire import PREFIX, Wire
from tests.load import resident

MEGABYTES, HEALTH, SLOWER, REST = 1000.0, 0.1, 2.0, 60.0
"""The claims: memory beyond the quiet server's, seconds for /health, times the quiet wait; and seconds of rest after
which nothing may be left."""
GOOD = 10
BAD = "127.0.0.66"
BODY = b"a" * 1_000_000
LONG = ["Once", "dyspec", {"budget": 64}, *RUN[3:]]
"""A run with long lines."""
HEAD = f"POST {PREFIX}/queue/join HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"


@dataclass
class Book:
    """The records of a test run. outcomes: attack -> how often each outcome came. waits: seconds of visitors until
    their first step. health: seconds until /health answered."""

    outcomes: dict[str, Counter] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


class Bad(Stranger):
    """The attacking client. held: connections that stay open until the attack is over. step: the event of the button
    Step. values: the values for that event."""

    def __init__(self, url: str) -> None:
        super().__init__(url, BAD)
        self.held: list[socket.socket] = []
        wire = Wire(url, BAD)
        self.step = wire.event("step", "click")["id"]
        self.values = wire.watch_values("Once upon a time", "none", 256)
        wire.leave()


Attack = Callable[[Bad], object]


def long_body(one: Bad) -> object:
    return answered(
        one.raw(f"{HEAD}Content-Length: 300000000\n\n", itertools.repeat(BODY, 300))[0]
    )[0]


def chunked_body(one: Bad) -> object:
    part = b"%x\r\n" % len(BODY) + BODY + b"\r\n"
    head = f"{HEAD}Transfer-Encoding: chunked\n\n"
    return answered(one.raw(head, itertools.repeat(part, 300))[0])[0]


def unfinished_body(one: Bad) -> object:
    """Send a request whose body never ends, and hold the connection open until the attack is over."""
    connection, _ = one.raw(f"{HEAD}Content-Length: 9000000\n\n", itertools.repeat(BODY, 8))
    connection.settimeout(1)
    one.held.append(connection)
    time.sleep(0.5)
    return "held"


def unfinished_head(one: Bad) -> object:
    one.held.append(one.raw("GET / HTTP/1.1\nHost: localhost\n")[0])
    return "held"


def unread_page(one: Bad) -> object:
    one.held.append(one.raw("GET / HTTP/1.1\nHost: localhost\n\n")[0])
    time.sleep(0.1)
    return "held"


def many_values(one: Bad) -> object:
    body = b'{"session_hash":"a","fn_index":1,"data":[' + b"{}," * 3_000_000 + b"1]}"
    headers = {"content-type": "application/json"}
    return one.http.post(f"{PREFIX}/queue/join", content=body, headers=headers).status_code


def upload(one: Bad) -> object:
    files = {"files": secrets.token_bytes(7_900_000)}
    return one.http.post(f"{PREFIX}/upload", files=files).status_code


def unread_run(one: Bad) -> object:
    return one.post("/call/run", {"data": RUN}).status_code


def read_run(one: Bad) -> object:
    """Make a run and read it, as a visitor would, as often as the share allows."""
    asked = one.post("/call/run", {"data": RUN})
    if asked.status_code != 200:
        return asked.status_code
    answer = one.http.get(f"{PREFIX}/call/run/{asked.json()['event_id']}", timeout=120)
    return "finished" if "event: complete" in answer.text else answer.text[-90:].strip()


def paused_run(one: Bad) -> object:
    return one.paused(secrets.token_hex(6), one.step, one.values) or "paused"


def heartbeat(one: Bad) -> object:
    head = f"GET {PREFIX}/heartbeat/{secrets.token_hex(6)} HTTP/1.1\nHost: localhost\n\n"
    one.held.append(one.raw(head)[0])
    return "held"


def beating_run(one: Bad) -> object:
    """Ask for runs whose answers nobody reads, under sessions whose heartbeats are held open."""
    if len(one.held) < 8:
        head = (
            f"GET {PREFIX}/heartbeat/beats{len(one.held)}-{id(one)} HTTP/1.1\nHost: localhost\n\n"
        )
        one.held.append(one.raw(head)[0])
        time.sleep(0.2)
    session = f"beats{random.randrange(len(one.held))}-{id(one)}"
    body = {"data": LONG, "session_hash": session}
    return one.post("/call/run", body).status_code


def trickled_run(one: Bad) -> object:
    """Read only a little of an answer, so that its connection does not end."""
    for connection in one.held:
        connection.settimeout(0.01)
        with suppress(OSError):
            connection.recv(4096)
    asked = one.post("/call/run", {"data": RUN})
    if asked.status_code != 200:
        return asked.status_code
    where = f"{PREFIX}/call/run/{asked.json()['event_id']}"
    one.held.append(one.raw(f"GET {where} HTTP/1.1\nHost: localhost\n\n")[0])
    return "held"


def nonsense(one: Bad) -> object:
    body = random.choice(
        [{}, [], {"data": []}, {"data": [], "fn_index": 999}, {"data": 7, "fn_index": 1}]
    )
    return one.post(random.choice(["/run/predict", "/queue/join", "/call/x"]), body).status_code


def foreign(one: Bad) -> object:
    headers = random.choice([{"host": "evil.example"}, {"origin": "https://evil.example"}])
    return one.post("/call/run", {"data": RUN}, headers=headers).status_code


def heavy_schema(one: Bad) -> object:
    """Ask for a schema of patterns that must all hold: it is small to write, and large to compile."""
    start = random.randrange(10, 50)
    patterns = [{"type": "string", "pattern": f"(.*{start + n}.*){{1,9}}"} for n in range(40)]
    values = [*RUN[:9], 8, json.dumps({"allOf": patterns}), False, ""]
    asked = one.post("/call/run", {"data": values})
    if asked.status_code != 200:
        return asked.status_code
    where = f"{PREFIX}/call/run/{asked.json()['event_id']}"
    try:
        return one.http.get(where, timeout=20).text[-90:].strip()
    except httpx.TimeoutException:
        return "left"


ATTACKS: dict[str, tuple[Attack, int]] = {
    "a body of 300 MB": (long_body, 1),
    "a chunked body of 300 MB": (chunked_body, 1),
    "bodies that do not end": (unfinished_body, 1),
    "requests that do not end": (unfinished_head, 1),
    "pages that nobody reads": (unread_page, 1),
    "three million values": (many_values, 1),
    "uploads of 8 MB": (upload, 1),
    "runs that nobody reads": (unread_run, 1),
    "runs that are read": (read_run, 6),
    "paused runs of made-up sessions": (paused_run, 1),
    "heartbeats of made-up sessions": (heartbeat, 1),
    "unread runs of sessions that beat": (beating_run, 1),
    "runs that are read a little": (trickled_run, 1),
    "nonsense": (nonsense, 1),
    "foreign names and sites": (foreign, 1),
    "heavy schemas": (heavy_schema, 1),
}
"""Each with the number of threads that try it."""
LEAST = 0.05
"""Seconds between two tries of one thread; the bound on all of this."""


def attack(url: str, name: str, until: float, found: Counter) -> None:
    one = Bad(url)
    while time.monotonic() < until:
        try:
            found[str(ATTACKS[name][0](one))] += 1
        except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
            found[type(error).__name__] += 1
        time.sleep(LEAST)
    for connection in one.held:
        connection.close()
    one.http.close()


def attacker(url: str, seconds: float, attacks: list[str], told: Connection) -> None:
    """Attack the server from a process with a low priority, because a real stranger has a machine of their own."""
    os.nice(10)
    outcomes = {name: Counter() for name in attacks}
    until = time.monotonic() + seconds
    at_once(
        [(attack, (url, a, until, outcomes[a])) for a in attacks for _ in range(ATTACKS[a][1])],
        seconds,
    )
    told.send(outcomes)


def at_once(work: list[tuple], seconds: float) -> None:
    threads = [threading.Thread(target=target, args=given, daemon=True) for target, given in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 180)


def visitor(wire: Wire, until: float, book: Book) -> None:
    """Presses Run again and again, and notes the wait for each first step."""
    while time.monotonic() < until:
        began, wait, said = time.monotonic(), None, ""
        try:
            for trace, state, message in wire.run("Once upon a time", "none", 64):
                if wait is None and trace and '"kind":"step"' in trace:
                    wait = time.monotonic() - began
                said = message if state == "error" else ""
        except (RuntimeError, httpx.HTTPError, OSError) as error:
            said = f"{type(error).__name__}: {error}"
        if wait is None:
            book.refused.append(said or "no step")
        else:
            book.waits.append(wait)
        time.sleep(0.5)


def watch(server: Server, until: float, book: Book) -> None:
    with httpx.Client(base_url=server.url, timeout=30) as http:
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                http.get("/health").raise_for_status()
                book.health.append(time.monotonic() - began)
            except httpx.HTTPError:
                book.health.append(30.0)
            book.memory.append(resident(server.pid))
            time.sleep(0.2)


def beside(server: Server, good: list[Wire], seconds: float, attacks: list[str]) -> Book:
    """Let the visitors use the server for ``seconds`` while these attacks go on. Returns the records."""
    book, until = Book(), time.monotonic() + seconds
    heard, told = multiprocessing.Pipe(duplex=False)
    given = (server.url, seconds, attacks, told)
    bad = multiprocessing.get_context("spawn").Process(target=attacker, args=given, daemon=True)
    bad.start()
    work = [(visitor, (one, until, book)) for one in good]
    at_once([*work, (watch, (server, until, book))], seconds)
    if heard.poll(seconds + 60):
        book.outcomes = heard.recv()
    bad.join(60)
    return book


def left(server: Server) -> dict[str, float]:
    """Return what the server holds now: threads, open files, kept runs, files and memory."""
    httpx.get(f"{server.url}/config")  # lets threads go that have been idle
    time.sleep(1)
    process, metrics = Path(f"/proc/{server.pid}"), httpx.get(f"{server.url}/metrics").text
    kept = next(x for x in metrics.splitlines() if x.startswith("draftscope_kept_runs "))
    files = [one for one in Path(tempfile.gettempdir(), "gradio").rglob("*") if one.is_file()]
    return {
        "threads": len(list((process / "task").iterdir())),
        "open files": len(list((process / "fd").iterdir())),
        "kept runs": float(kept.split()[1]),
        "files in gradio's folder": len(files),
        "memory_mb": round(resident(server.pid)),
    }


def waits(book: Book) -> dict[str, object]:
    found = sorted(book.waits) or [float("inf")]
    return {
        "runs": len(book.waits),
        "median_wait_s": round(median(found), 2),
        "worst_wait_s": round(found[-1], 2),
        "refused": dict(Counter(book.refused)),
        "worst_health_s": round(max(book.health), 3),
        "health_in_99_of_100_s": round(sorted(book.health)[int(len(book.health) * 0.99)], 3),
        "worst_memory_mb": round(max(book.memory)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.abuse", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--without", action="append", default=[], choices=list(ATTACKS))
    given = parser.parse_args()
    attacks = [one for one in ATTACKS if one not in given.without]
    with tempfile.TemporaryFile("w+") as errors, serving(errors=errors) as server:
        Wire(server.url).ready()
        while httpx.get(f"{server.url}/health").json()["status"] != "ready":
            time.sleep(1)
        good = [Wire(server.url, f"127.0.2.{number + 1}") for number in range(GOOD)]
        beside(server, good, min(given.seconds, 15), [])  # everything that the server makes once
        before = left(server)
        quiet = beside(server, good, given.seconds, [])
        abused = beside(server, good, given.seconds, attacks)
        time.sleep(REST)
        after = left(server)
        errors.seek(0)
        log = errors.read()
    told = {
        "tried": {name: dict(found.most_common(5)) for name, found in abused.outcomes.items()},
        "quiet": waits(quiet),
        "abused": waits(abused),
        "before": before,
        "a minute later": after,
        "log_lines": log.count("\n"),
    }
    print(json.dumps(told, indent=1))
    failed = broken(quiet, abused, before, after, log)
    print("\n".join(failed) or "All claims hold.")
    return 1 if failed else 0


def broken(quiet: Book, abused: Book, before: dict, after: dict, log: str) -> list[str]:
    """Return the claims that do not hold."""
    wrong = {
        "a visitor was refused": abused.refused,
        "memory grew too much": max(abused.memory) > max(quiet.memory) + MEGABYTES,
        "/health was slow": max(abused.health) > max(HEALTH, max(quiet.health)),
        "visitors waited too long": median(abused.waits or [1e9]) > SLOWER * median(quiet.waits)
        or max(abused.waits, default=1e9) > SLOWER * max(quiet.waits),
        "something was left behind": any(
            after[one] > before[one] + 2 for one in before if one != "memory_mb"
        ),
        "there was a traceback in the log": "Traceback" in log,
    }
    return [claim for claim, fails in wrong.items() if fails]


if __name__ == "__main__":
    sys.exit(main())
