"""A tuning beside an exhaustive run: every size of every drafter, after prompts that the tuning has not seen.

    python -m tests.tune.every_setting [--models smollm2] [--drafters chain,dyspec] [--prompts 12] [--processor-time]

It prints the recommended setting and the best of all, how far apart they are on those prompts, and how long both took. The best come
from few prompts and were lucky, so they write once more, in turn with the recommended one. With --processor-time all times are those
that this process spent on processors: on a busy machine nothing else compares.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

BEST = 4  # settings that write once more
PROMPTS = 12


def compare(models: str, drafters: Sequence[str] | None, prompts: int) -> None:
    # the clock was chosen before these take it by name
    from engine.core.sampling import Sampling
    from engine.tune.answering import ranked
    from engine.tune.candidates import in_sizes
    from engine.tune.checking_race import Race
    from engine.tune.opened_tuning import OpenedTuning
    from engine.tune.prompt_sample import Sample
    from engine.tune.speed_prediction import speed_of
    from engine.tune.tuning import Tuning, unique
    from engine.tune.tuning_request import TuningRequest
    from engine.tune.writing_in_turn import Writers
    from presets import family
    from presets.tuning import usual_prompts

    clock, sampling, usual = time.perf_counter, Sampling(), usual_prompts(models)
    by_turns = Sample.of(usual, most=len(usual))
    unseen = replace(by_turns, prompts=by_turns.prompts[:prompts])
    seen = Sample.of(by_turns.prompts[prompts:])
    request = TuningRequest(family(models), seen, drafters and tuple(drafters))

    began = clock()
    lines = [*Tuning(request).lines()]
    tuned = clock() - began
    answer = lines[-1]
    print(f"The tuning: {answer['sentence']}")

    opened = OpenedTuning(replace(request, prompts=unseen, texts=(1,)), sampling)
    settings = unique([size for candidate in opened.first for size in in_sizes(candidate)])
    began = clock()
    for candidate in Writers(opened, sampling, request.new_tokens).write(
        opened.plain, settings, prompts
    ):
        print(f"\r{candidate.prompts} prompts {candidate.cls.key:20}", end="", file=sys.stderr)
    spent = clock() - began
    speeds = {(each.key, 1): speed_of(each, opened.plain, 1, opened.costs) for each in settings}
    order = ranked(settings, speeds, 1)
    recommended = [each for each in settings if each.key[:2] == (answer["drafter"], answer["size"])]
    print(f"Every setting after {len(opened.prompts)} other prompts, the best and the recommended:")
    _tell((each, speeds[each.key, 1].ratio) for each in unique([*order[:10], *recommended]))

    again = unique([*order[:BEST], *recommended])
    *_, rates = Race([opened.plain, *again], opened.models, None, sampling, request.new_tokens).run(
        [prompt for _, prompt in opened.prompts], 1
    )
    ratios = {each.key: rate / rates[0] for each, rate in zip(again, rates[1:], strict=True)}
    print("Once more, in turn:")
    _tell((each, ratios[each.key]) for each in again)
    best, own = max(ratios.values()), (ratios[recommended[0].key] if recommended else 1.0)
    print(f"The recommended setting is {1 - own / best:.1%} slower than the best.")

    whole = spent * len(seen.prompts) / len(opened.prompts)
    print(
        f"The tuning took {tuned:.0f} s, every setting {spent:.0f} s, which is {whole:.0f} s after the {len(seen.prompts)} prompts "
        f"of the tuning: {tuned / whole:.2f} of it."
    )
    checked = {
        (line["drafter"], line["size"], line["texts"]): line["predicted"] / line["checked"] - 1
        for line in lines
        if line["kind"] == "setting" and line["checked"] is not None
    }
    for (drafter, size, count), off in checked.items():
        print(f"{drafter:20}{size:4}, {count:2} texts: predicted {off:+.1%} of the checked speed")


def _tell(rows) -> None:
    for candidate, ratio in rows:
        print(f"  {candidate.cls.key:20}{candidate.size:4}  {ratio:.2f} times plain decoding")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tune.every_setting", description=__doc__)
    parser.add_argument("--models", default="", help="a family; else the embedded one")
    parser.add_argument("--drafters", metavar="KEY,KEY", help="only these")
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="that the tuning has not seen")
    parser.add_argument("--processor-time", action="store_true")
    asked = parser.parse_args()
    if asked.processor_time:
        time.perf_counter = time.process_time
    compare(asked.models, asked.drafters and asked.drafters.split(","), asked.prompts)


if __name__ == "__main__":
    main()
