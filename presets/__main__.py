"""`python -m presets`: run every preset and the first race once; keep their traces for the page."""

import sys
from pathlib import Path

from engine.run import RunRequest, open_run
from engine.trace import write_lines
from presets import HERE, family, presets, race_file, races


def main() -> int:
    """Write ``presets/traces/NAME.ndjson`` for each preset and ``presets/traces/race/LANE.ndjson``
    for each lane of the first race; returns the exit code."""
    for card in presets():
        request = RunRequest(
            prompt=card.prompt,
            models=family(),
            drafter=card.drafter,
            options=card.options,
            temperature=card.temperature,
            max_new_tokens=card.max_new_tokens,
        )
        record(request, HERE / "traces" / f"{card.name}.ndjson")
    race = races()[0]
    for lane in race.lanes:
        request = RunRequest(race.prompt, family(), lane, max_new_tokens=race.max_new_tokens)
        record(request, race_file(lane))
    return 0


def record(request: RunRequest, path: Path) -> None:
    """Run this and write its trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    open_run(request).cancel()  # loads the models, so that no timing contains it
    run = open_run(request)
    write_lines(path, [run.header(), *run.steps(), run.summary()])
    print(f"{path.relative_to(HERE)}: {run.milliseconds:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
