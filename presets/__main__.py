"""`python -m presets`: run every preset and every race once; keep their traces for the page.
`python -m presets NAME ...`: only these. `python -m presets methods [KEY ...]`: the examples and the figures of the
method cards. `python -m presets price [KEY ...]`: the costs of lossy methods. `python -m presets experts`: what passes of
the targets with experts need and take, on one thread; best on a quiet machine. `python -m presets real`: fetches the
targets that are no part of the repository, unless they are there. `python -m presets speed [NAME ...]`: how fast these
examples are against plain decoding, here, and whether the texts are alike. `python -m presets check`: whether each
"look for" and each claim of a lesson is true. `python -m presets prompts NAME [WORKLOAD]`: with which prompts of its
workload, or of another one, an example shows what it promises."""

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


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0; 1 where `check` found something; 2 for a user's mistake, reported in one line."""
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
    """Fetch each target that is not there yet, and say where it lies."""
    for name in sources():
        bar = terminal.Bar()
        try:
            place = fetch(name, bar)
        finally:
            bar.close()
        print(f"{name}: {place}")


def record_listed(names: list[str]) -> None:
    """Record the traces of these presets and races, or of all where none is named."""
    known = {one.name: one for one in (*presets(), *races())}
    for name in names:
        if name not in known:
            raise unknown("example", name, known)
    for name in names or known:
        record_one(known[name])
    record_checked([preset.name for preset in presets() if preset.name in (names or known)])


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
