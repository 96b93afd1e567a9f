"""python -m tests.app.presses [TIMES]: presses Run on the first example ten times, or so many, each time as another visitor,
and prints what *Is it faster?* answers, measured anew for each, and how far the answers lie apart. For a quiet machine."""

import statistics
import sys
import time
from collections.abc import Iterator

from app import live, warm
from app.example_menu import preset_menu
from app.speed import Speeds

ASKS = 1.0
"""Seconds between two questions, as on the page."""


def answers(times: int) -> Iterator[tuple[dict, float]]:
    """Yield, for each press, the figures that the page gets in the end (``presets.speed.speed``), and the seconds until
    they come."""
    warm.ready.set()  # nothing is tried ahead
    values = next(iter(preset_menu().values()))
    for number in range(times):
        session = f"visitor {number}"
        *_, (_, state, message) = live.start(session, "watch", live.watch_job(session), values)
        if state != "done":
            raise RuntimeError(message)
        seat, speeds, began = live.seats.get(session, "watch"), Speeds(), time.monotonic()
        seat.paged = True  # else it is let go after half a minute
        while (told := speeds.ask(session, seat))["measuring"]:
            time.sleep(ASKS)
        yield told["checked"]["speed"], time.monotonic() - began
        live.leave(session, "watch")


def main(times: int) -> None:
    ratios = []
    for speed, seconds in answers(times):
        ratios.append(speed["ratio"])
        print(
            f"{speed['ratio']:.3f} times as fast ({speed['low']:.2f} to {speed['high']:.2f}), "
            f"{speed['rounds']} rounds in {seconds:.0f} s",
            flush=True,
        )
    middle = statistics.median(ratios)
    apart = max(abs(ratio / middle - 1) for ratio in ratios)
    print(f"median {middle:.3f}; the farthest is {apart:.1%} from it (aim: at most 10 %)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
