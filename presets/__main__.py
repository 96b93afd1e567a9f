"""The command ``python -m presets``, which makes the finished traces and the measured figures of the page.

``python -m presets [NAME ...]`` records the traces of these presets and races, or of all of them.
``methods [KEY ...]`` records the examples and the figures of method cards. ``price [KEY ...]`` measures the costs of
lossy methods. ``experts`` measures the passes of the targets with experts, on one thread; a quiet machine is best.
``real`` fetches the targets that are not in the repository. ``speed [NAME ...]`` compares examples with plain decoding
on this machine, their speeds and their texts. ``tuning`` measures the answer with which Tune opens. ``check`` checks each "look for" and each claim of a lesson.
``prompts NAME [WORKLOAD]`` finds the prompts of a workload with which an example shows what it promises.
"""

import sys

from engine.cli import terminal
from engine.errors import UserError, unknown
from presets import Preset, RacePreset, presets, race_file, races, trace_file, trace_names
from presets.checked import record_checked
from presets.conditions import untrue
from presets.fetched import fetch, sources
from presets.fitting import fitting
from presets.lessons import expert_passes
from presets.lessons.claims import untrue_claims
from presets.methods.measuring import measure
from presets.methods.pricing import measure_prices
from presets.recording import lane_requests, record, request_of
from presets.tuning import record_tuning


def main(arguments: list[str]) -> int:
    """Run one command. Returns the exit code: 0; 1 if ``check`` finds something untrue; 2 for a mistake of the user,
    which is reported in one line; 130 after Ctrl-C."""
    try:
        if arguments[:1] == ["methods"]:
            measure(arguments[1:])
        elif arguments[:1] == ["price"]:
            measure_prices(arguments[1:])
        elif arguments[:1] == ["prompts"] and len(arguments) in (2, 3):
            for prompt, broken in fitting(*arguments[1:]):
                print(f"{prompt}: {'; '.join(broken) or 'fits'}", flush=True)
        elif arguments == ["experts"]:
            expert_passes.measure()
        elif arguments == ["real"]:
            fetch_all()
        elif arguments[:1] == ["speed"]:
            record_checked(arguments[1:] or trace_names())
        elif arguments == ["tuning"]:
            record_tuning()
        elif arguments == ["check"]:
            return report()
        else:
            record_listed(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cancelled", file=sys.stderr)
        return 128 + 2
    return 0


def fetch_all() -> None:
    """Fetch each target that is not on this machine yet, and print the folder of each target."""
    for name in sources():
        bar = terminal.Bar()
        try:
            place = fetch(name, bar)
        finally:
            bar.close()
        print(f"{name}: {place}")


def record_listed(names: list[str]) -> None:
    """Record the traces of these presets and races, or of all if ``names`` is empty, and compare them with plain
    decoding. Raises UserError for an unknown name."""
    by_name = {example.name: example for example in (*presets(), *races())}
    for name in names:
        if name not in by_name:
            raise unknown("example", name, by_name)
    for name in names or by_name:
        record_one(by_name[name])
    record_checked([preset.name for preset in presets() if preset.name in (names or by_name)])


def record_one(card: Preset | RacePreset) -> None:
    if isinstance(card, Preset):
        record(request_of(card), trace_file(card.name))
        return
    for lane, request in lane_requests(card):
        record(request, race_file(card.name, lane))


def report() -> int:
    """Print each condition that its finished trace does not meet. Returns 1 if there is one, else 0."""
    broken = [*untrue(), *untrue_claims()]
    for line in broken:
        print(line)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
