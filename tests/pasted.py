"""What a long prompt costs the others: python -m tests.pasted --seconds 120 --tokens 6000

Starts the page on the real chat model; a few visitors write short texts with it while another pastes a prompt of so many tokens every
20 seconds. Prints how long the others waited for a step: the time between two updates of a run. Exit code 1 where a run fails, or
where the longest wait is over --most seconds.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Iterator

from tests.app.serving import serving
from tests.app.wire import Wire
from tests.load import prompt

MODELS = "smollm2"
EVERY = 20.0
"""Seconds between two long prompts."""
ROOM = {
    "PROMPT_CHARACTERS": 64_000,
    "CONVERSATION_CHARACTERS": 64_000,
    "KV_MEGABYTES": 1024,
    "RUN_SECONDS": 900,
}
WORDS = ("the dog and a cat went to see the old red house by the river on the hill " * 512).split()


def waits(event: Iterator, failures: list[str]) -> Iterator[float]:
    """Yield the seconds until each update of a run that brings a step."""
    steps, since, state = 0, time.monotonic(), ""
    for trace, state, message in event:
        count = (trace or "").count('"kind":"step"')
        if count > steps:
            yield time.monotonic() - since
            steps, since = count, time.monotonic()
    if state != "done":
        failures.append(f"{state}: {message}")


def visit(url: str, number: int, until: float, waited: list[float], failures: list[str]) -> None:
    wire, chance = Wire(url, f"127.0.1.{1 + number}"), random.Random(number)
    while time.monotonic() < until:
        event = wire.run(prompt(chance), "prompt_lookup", 48, models=MODELS)
        waited.extend(waits(event, failures))
    wire.leave()


def paste(
    url: str, tokens: int, drafter: str, until: float, took: list, failures: list[str]
) -> None:
    wire = Wire(url, "127.0.2.1")
    while time.monotonic() < until:
        began = time.monotonic()
        text = f"{began} {' '.join(WORDS[:tokens])}"
        took.append(max(waits(wire.run(text, drafter, 4, models=MODELS), failures), default=0.0))
        time.sleep(max(0.0, began + EVERY - time.monotonic()))
    wire.leave()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pasted", description=__doc__)
    parser.add_argument("--visitors", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--tokens", type=int, default=6000)
    parser.add_argument("--drafter", default="prompt_lookup", help="of the long prompts")
    parser.add_argument("--most", type=float, default=1e9, help="seconds of the longest wait")
    given = parser.parse_args()
    waited: list[float] = []
    took: list[float] = []
    failures: list[str] = []
    settings = {f"DRAFTSCOPE_{name}": str(value) for name, value in ROOM.items()}
    with serving(DRAFTSCOPE_AHEAD="none", **settings) as server:
        first = Wire(server.url)
        for drafter in ("prompt_lookup", given.drafter):
            for _ in first.run("Hello", drafter, 4, models=MODELS):
                pass
        until = time.monotonic() + given.seconds
        threads = [
            threading.Thread(
                target=visit, args=(server.url, number, until, waited, failures), daemon=True
            )
            for number in range(given.visitors)
        ]
        pasting = (server.url, given.tokens, given.drafter, until, took, failures)
        threads.append(threading.Thread(target=paste, args=pasting, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(given.seconds * 3 + 120)
        failures += ["a visitor still waits"] * any(thread.is_alive() for thread in threads)
    waited.sort()
    told = {
        "visitors": given.visitors,
        "tokens": given.tokens,
        "steps": len(waited),
        "longest_wait_s": [round(each, 2) for each in waited[-5:]],
        "median_wait_s": round(waited[len(waited) // 2], 3) if waited else None,
        "long_prompts_first_step_after_s": [round(each, 2) for each in took],
        "failures": failures[:10],
    }
    print(json.dumps(told, indent=1))
    return 1 if failures or not waited or waited[-1] > given.most else 0


if __name__ == "__main__":
    sys.exit(main())
