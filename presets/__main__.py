"""`python -m presets`: run every preset once and keep its trace for the page."""

import sys

from engine.run import RunRequest, open_run
from engine.trace import write_lines
from presets import HERE, family, presets


def main() -> int:
    """Write ``presets/traces/NAME.ndjson`` for each preset; returns the exit code."""
    (HERE / "traces").mkdir(exist_ok=True)
    for card in presets():
        request = RunRequest(
            prompt=card.prompt,
            models=family(),
            drafter=card.drafter,
            options=card.options,
            temperature=card.temperature,
            max_new_tokens=card.max_new_tokens,
        )
        open_run(request).cancel()  # loads the models, so that no timing contains it
        run = open_run(request)
        write_lines(
            HERE / "traces" / f"{card.name}.ndjson", [run.header(), *run.steps(), run.summary()]
        )
        print(f"{card.name}: {run.milliseconds:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
