"""`python -m tests.engine.recording_cost`: what recording adds to a run, as a share of engine time.

Each drafter runs the opening prompt a few times, greedy and sampled; medians.
"""

import json
import statistics
import time

from engine.run import open_run
from presets import presets
from tests.engine.family import offered, request

REPEATS = 5


def cost(key: str, temperature: float) -> tuple[float, float]:
    """(engine ms, everything else between the first and the last line in ms)"""
    run = open_run(
        request(presets()[0].prompt, drafter=key, temperature=temperature, max_new_tokens=64)
    )
    begun = time.perf_counter()
    for _ in (run.header(), *run.steps()):
        pass
    spent = json.loads(run.summary())["milliseconds"]["total"]
    return spent, (time.perf_counter() - begun) * 1000 - spent


def main() -> None:
    print(f"{'drafter':14} {'temperature':>11} {'engine ms':>10} {'recording ms':>13} {'share':>7}")
    for key in offered():
        for temperature in (0.0, 0.8):
            runs = [cost(key, temperature) for _ in range(REPEATS + 1)][1:]
            engine, recording = (statistics.median(column) for column in zip(*runs, strict=True))
            share = recording / engine
            print(f"{key:14} {temperature:11.1f} {engine:10.1f} {recording:13.1f} {share:7.1%}")


if __name__ == "__main__":
    main()
