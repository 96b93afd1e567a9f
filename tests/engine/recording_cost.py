"""`python -m tests.engine.recording_cost`: what recording adds to a run, as a share of engine time.

Each drafter continues the opening prompt, greedy and sampled. The drafters take turns several times, and the
smallest times of each are used, because other processes on the machine disturb those least.
"""

import json
import time

from engine.run import open_run
from presets import presets
from tests.engine.family import offered, request

REPEATS = 5


def cost(key: str, temperature: float) -> tuple[float, float]:
    """Return (engine time, all other time between the first and the last line), both in ms."""
    run = open_run(
        request(presets()[0].prompt, drafter=key, temperature=temperature, max_new_tokens=64)
    )
    begun = time.perf_counter()
    for _ in (run.header(), *run.steps()):
        pass
    spent = json.loads(run.summary())["milliseconds"]["total"]
    return spent, (time.perf_counter() - begun) * 1000 - spent


def main() -> None:
    settings = [(key, temperature) for key in offered() for temperature in (0.0, 0.8)]
    found: dict[tuple[str, float], list[tuple[float, float]]] = {one: [] for one in settings}
    for turn in range(REPEATS + 1):
        for one in settings:
            spent = cost(*one)
            if turn:  # the first turn is a warm-up
                found[one].append(spent)
    print(f"{'drafter':14} {'temperature':>11} {'engine ms':>10} {'recording ms':>13} {'share':>7}")
    for (key, temperature), runs in found.items():
        engine, recording = (min(column) for column in zip(*runs, strict=True))
        share = recording / engine
        print(f"{key:14} {temperature:11.1f} {engine:10.1f} {recording:13.1f} {share:7.1%}")


if __name__ == "__main__":
    main()
