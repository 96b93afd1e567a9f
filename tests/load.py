"""Many visitors at once, as they come: python -m tests.load --visitors 40 --seconds 300

Starts the page, lets so many real Gradio connections use it for so long (runs on Watch, races, pauses, closed
tabs), after a warm-up of the same kind, and prints what a host wants to know. Exit code 1 where a claim fails:
an error that is no stated refusal, a finished run that is no valid trace of its own prompt, a visitor too many
who does not get the page within three seconds, memory that grew by more than a twentieth, more memory than --most
at any time or than --fresh one minute after the start.
"""

import argparse
import json
import random
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field

import httpx

from engine.errors import UserError
from engine.trace import read_trace
from tests.app.serving import serving
from tests.app.wire import Wire
from viz.race import split

WORDS = ["dog", "cat", "bird", "tree", "river", "boat", "house", "little", "red", "blue", "happy"]
DRAFTERS = ("chain", "dyspec", "prompt_lookup", "none", "token_recycling")
REFUSED = "This machine is full"
GROWTH, PATIENCE = 1.05, 3.0
MOST, FRESH, MINUTE = 3000.0, 1500.0, 60.0


@dataclass
class Book:
    """The outcomes, waits and errors of all visitors."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    outcomes: Counter = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    steps: int = 0
    errors: list[str] = field(default_factory=list)

    def note(self, outcome: str, wait: float | None = None, steps: int = 0) -> None:
        with self.lock:
            self.outcomes[outcome] += 1
            self.steps += steps
            if wait is not None:
                self.waits.append(wait)

    def fail(self, why: str) -> None:
        with self.lock:
            self.errors.append(why)


def visitor(url: str, number: int, until: float, book: Book) -> None:
    """Act as one person, who opens the page, runs things and leaves, again and again until the time is over."""
    chance = random.Random(number)
    while time.monotonic() < until:
        try:
            wire = Wire(url, f"127.0.1.{1 + number % 250}")
            for _ in range(chance.randint(1, 3)):
                if time.monotonic() > until:
                    break
                act = chance.choice((watch, watch, pause, race, close))
                act(wire, chance, book)
                if act is close:
                    break
            wire.leave()
        except (RuntimeError, httpx.HTTPError, OSError, ValueError, KeyError) as error:
            book.fail(f"visitor {number}: {type(error).__name__}: {error}")
        time.sleep(chance.uniform(0.2, 2.0))


def prompt(chance: random.Random) -> str:
    return "Once upon a time " + " ".join(chance.choices(WORDS, k=chance.randint(2, 12)))


def begun(wire: Wire, chance: random.Random, kind: str):
    """Begin a run. Returns its event, its prompt, and when it was sent."""
    asked = prompt(chance)
    tokens = chance.choice((8, 32, 96, 200))
    event = (
        wire.run(asked, chance.choice(DRAFTERS), tokens)
        if kind == "watch"
        else wire.race(asked, 24)
    )
    return event, asked, time.monotonic()


def follow(event, asked: str, sent: float, book: Book, enough=None) -> None:
    """Hear an event to its end. Calls ``enough(steps so far)`` until it returns true."""
    wait, text, state, message = None, "", "", ""
    for trace, state, message in event:
        text = trace if trace is not None else text
        if wait is None and '"kind":"step"' in text:
            wait = time.monotonic() - sent
        if message.startswith("You are number"):
            with book.lock:
                book.places.append(int(message.split()[3]))
        if enough and enough(text.count('"kind":"step"')):
            enough = None
    finish(text, state, message, asked, wait, book)


def finish(text: str, state: str, message: str, asked: str, wait, book: Book) -> None:
    if state == "error":
        if message.startswith(REFUSED):
            return book.note("refused")
        return book.fail(f"said: {message}")
    if state != "done":
        return book.note(state or "silent", wait)
    traces = split(text) if '"lane":' in text.partition("\n")[0] else {"": text}
    for lane in traces.values():
        try:
            found = read_trace(lane)
        except UserError as error:
            return book.fail(f"no trace: {error}")
        if found.run["prompt"]["text"] != asked:
            return book.fail("a trace of another visitor's prompt")
    return book.note("finished", wait, text.count('"kind":"step"'))


def watch(wire: Wire, chance: random.Random, book: Book) -> None:
    follow(*begun(wire, chance, "watch"), book)


def race(wire: Wire, chance: random.Random, book: Book) -> None:
    follow(*begun(wire, chance, "compare"), book)


def pause(wire: Wire, chance: random.Random, book: Book) -> None:
    event, asked, sent = begun(wire, chance, "watch")
    follow(
        event, asked, sent, book, enough=lambda steps: steps >= 2 and (wire.ask("pause") or True)
    )
    time.sleep(chance.uniform(0.1, 1.0))
    follow(wire.resume(), asked, time.monotonic(), book)


def close(wire: Wire, chance: random.Random, book: Book) -> None:
    event, _, _ = begun(wire, chance, "watch")
    next(event, None)
    wire.leave()
    book.note("closed")


def resident(pid: int) -> float:
    """Megabytes of memory that a process uses."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        line = next(one for one in status if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def crowd(url: str, pid: int, visitors: int, seconds: float) -> tuple[Book, list[float]]:
    """Let this many visitors come for this long. Returns their book, and the memory over that time in megabytes."""
    book, memory, until = Book(), [], time.monotonic() + seconds
    threads = [
        threading.Thread(target=visitor, args=(url, number, until, book), daemon=True)
        for number in range(visitors)
    ]
    for thread in threads:
        thread.start()
    while (
        any(thread.is_alive() for thread in threads) and time.monotonic() < until + 4 * seconds + 60
    ):
        memory.append(resident(pid))
        time.sleep(min(5.0, seconds / 10))
    if any(thread.is_alive() for thread in threads):
        book.fail("a visitor still waits for an answer")
    return book, memory


def opened(url: str) -> float:
    """Return the seconds until one more visitor has received the page."""
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--visitors", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--warm-up", type=float, help="seconds; as long as the crowd if left out")
    parser.add_argument("--most", type=float, default=MOST, help="megabytes of memory")
    parser.add_argument("--fresh", type=float, default=FRESH, help="the same, soon after the start")
    given = parser.parse_args()
    with serving() as server:
        Wire(server.url).ready()
        time.sleep(MINUTE)
        fresh = resident(server.pid)
        warm = crowd(server.url, server.pid, given.visitors, given.warm_up or given.seconds)
        time.sleep(5)
        before = resident(server.pid)
        drawn: list[float] = []
        late = threading.Timer(given.seconds / 2, lambda: drawn.append(opened(server.url)))
        late.start()
        book, memory = crowd(server.url, server.pid, given.visitors, given.seconds)
        late.join()
        time.sleep(5)
        after = resident(server.pid)
    book.errors += warm[0].errors
    if fresh > given.fresh:
        book.fail(f"a minute after the start the server takes {fresh:.0f} MB")
    peak = max([*warm[1], before, *memory, after])
    if peak > given.most:
        book.fail(f"the server takes {peak:.0f} MB")
    if after > GROWTH * before:
        book.fail(f"memory grew from {before:.0f} to {after:.0f} MB")
    if not drawn or drawn[0] > PATIENCE:
        book.fail(f"one visitor more had the page after {drawn or 'never'} s")
    report(book, fresh, memory, before, after, drawn, given)
    return 1 if book.errors else 0


def report(
    book: Book, fresh: float, memory: list[float], before: float, after: float, drawn, given
) -> None:
    waits = sorted(book.waits) or [0.0]
    numbers = {
        "visitors": given.visitors,
        "seconds": given.seconds,
        "outcomes": dict(book.outcomes),
        "worst_wait_for_the_first_step_s": round(waits[-1], 2),
        "median_wait_s": round(waits[len(waits) // 2], 2),
        "last_place_in_line": max(book.places, default=0),
        "steps_a_second": round(book.steps / given.seconds, 1),
        "memory_after_a_minute_mb": round(fresh),
        "memory_mb": [round(one) for one in memory],
        "memory_before_and_after_mb": [round(before), round(after)],
        "one_more_visitor_has_the_page_after_s": [round(one, 2) for one in drawn],
        "errors": book.errors[:20],
    }
    print(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    sys.exit(main())
