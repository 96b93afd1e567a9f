"""A tuning beside an exhaustive run: every size of every drafter, after prompts that the tuning has not seen.

    python -m tests.tune.every_setting [--models smollm2] [--drafters chain,dyspec] [--prompts 12] [--processor-time]

It prints the recommended setting and the best of all, how far apart they are on those prompts, and how long both took, each in a
process of its own; the second time both find their compiled models in the cache folder. The best come from few prompts and were
lucky, so they write once more, in turn with the recommended one. With --processor-time all times are those that a process spent on
processors: on a busy machine nothing else compares.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context

from engine.core.sampling import Sampling
from engine.tune.prompt_sample import Sample
from engine.tune.tuning_request import TuningRequest
from presets import family
from presets.tuning import usual_prompts

BEST = 4  # settings that write once more
PROMPTS = 12
Row = tuple[str, int, float]
"""Drafter, size, and how many times as fast as plain decoding."""


def use_processor_time(wanted: bool) -> None:
    """Replace the clock by processor time. Call this in a fresh process, before its modules import the clock by
    name."""
    if wanted:
        time.perf_counter = time.process_time


def tuned(request: TuningRequest) -> tuple[list[dict], float, float]:
    """Return the lines of a tuning, its seconds, and those among them that measured several texts at a time."""
    began = since = time.perf_counter()
    from engine.tune.tuning import Tuning

    lines, several = [], 0.0
    for line in Tuning(request).lines():
        lines.append(line)
        if line["kind"] in (
            "cost",
            "setting",
        ):  # what they tell was measured since the last of them
            now = time.perf_counter()
            several += (now - since) * (line["texts"] > 1)
            since = now
    return lines, time.perf_counter() - began, several


def every(
    request: TuningRequest, drafter: str, size: int
) -> tuple[list[Row], list[Row], list[float]]:
    """Run all settings after the prompts. Returns all settings, the best first; the best and the recommended setting
    once more; the seconds of opening and of writing."""
    times = [time.perf_counter()]
    from engine.fast.cpu.budget import graph_memory
    from engine.tune.answering import ranked
    from engine.tune.candidates import in_sizes
    from engine.tune.checking_race import Race
    from engine.tune.opened_tuning import OpenedTuning
    from engine.tune.speed_prediction import speed_of
    from engine.tune.tuning import unique
    from engine.tune.writing_in_turn import Writers

    sampling = Sampling()
    opened = OpenedTuning(request, sampling)
    times.append(time.perf_counter())
    plain, prompts = opened.plain, [prompt for _, prompt in opened.prompts]
    settings = unique(size for candidate in opened.first for size in in_sizes(candidate))
    writers = Writers(opened, sampling, request.new_tokens)
    with (
        graph_memory().unbounded()
    ):  # each setting has all of the room for itself where people use it
        for candidate in writers.write(plain, settings, len(prompts)):
            print(f"\r{candidate.prompts} prompts, {candidate.cls.key:20}", end="", file=sys.stderr)
        times.append(time.perf_counter())
        speeds = {(each.key, 1): speed_of(each, plain, 1, opened.costs) for each in settings}
        order = ranked(settings, speeds, 1)
        again = [each for each in order if each in order[:BEST] or each.key[:2] == (drafter, size)]
        race = Race([plain, *again], opened.models, sampling, request.new_tokens)
        *_, (plainly, *rates) = race.run(prompts, 1)
    told = [(*each.key[:2], speeds[each.key, 1].ratio) for each in order]
    once_more = [(*e.key[:2], rate / plainly) for e, rate in zip(again, rates, strict=True)]
    return told, once_more, [after - before for before, after in pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tune.every_setting", description=__doc__)
    parser.add_argument("--models", default="", help="a family; else the embedded one")
    parser.add_argument("--drafters", metavar="KEY,KEY", help="only these")
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="that the tuning has not seen")
    parser.add_argument("--processor-time", action="store_true")
    asked = parser.parse_args()

    usual = usual_prompts(asked.models)
    by_turns = Sample.of(usual, most=len(usual))
    seen = Sample.of(by_turns.prompts[asked.prompts :])
    unseen = replace(by_turns, prompts=by_turns.prompts[: asked.prompts])
    keys = asked.drafters and tuple(asked.drafters.split(","))
    request = TuningRequest(family(asked.models), seen, keys)
    one_text = replace(request, prompts=unseen, texts=(1,))

    processes = ProcessPoolExecutor(
        1, get_context("spawn"), use_processor_time, (asked.processor_time,), max_tasks_per_child=1
    )
    with processes:
        lines, took, several = processes.submit(tuned, request).result()
        answer = lines[-1]
        told, again, (opening, writing) = processes.submit(
            every, one_text, answer["drafter"], answer["size"]
        ).result()
    print(f"\nThe tuning: {answer['sentence']}")
    _tell(f"{len(told)} settings after {asked.prompts} other prompts", told[:10])
    _tell("The best of them and the recommended one once more", again)
    own = next((ratio for *key, ratio in again if key == [answer["drafter"], answer["size"]]), 1.0)
    behind = 1 - own / max(1.0, *(ratio for *_, ratio in again))
    print(f"The recommended setting is {behind:.1%} slower than the best.")
    whole = opening + writing * len(seen.prompts) / asked.prompts
    print(
        f"The tuning took {took:.0f} s, the exhaustive run {opening + writing:.0f} s, which is {whole:.0f} s after "
        f"the {len(seen.prompts)} prompts of the tuning: {took / whole:.2f} of it. Without "
        f"the {several:.0f} s for several texts at a time, which the exhaustive run leaves out: {(took - several) / whole:.2f}."
    )
    checked = {
        (line["drafter"], line["size"], line["texts"]): line["predicted"] / line["checked"] - 1
        for line in lines
        if line["kind"] == "setting" and line["checked"] is not None
    }
    for (drafter, size, count), off in checked.items():
        print(f"{drafter:20}{size:4}, {count:2} texts: predicted {off:+.1%} off the checked speed")


def _tell(what: str, rows: list[Row]) -> None:
    print(f"{what}:")
    for drafter, size, ratio in rows:
        print(f"  {drafter:20}{size:4}  {ratio:.2f} times plain decoding")


if __name__ == "__main__":
    main()
