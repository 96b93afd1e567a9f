"""`python -m presets`: run every preset and the first race once; keep their traces for the page.
`python -m presets methods [KEY ...]`: the examples and the figures of the method cards."""

import sys

from engine.errors import UserError
from engine.run import RunRequest
from presets import family, presets, race_file, races, trace_file
from presets.methods.measuring import measure
from presets.recording import record, request_of


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0, or 2 for a mistake of the user's, said in one line."""
    try:
        if not arguments:
            record_listed()
        elif arguments[0] == "methods":
            measure(arguments[1:])
        else:
            raise UserError(f"There is no command {arguments[0]!r}; there is: methods.")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def record_listed() -> None:
    """The trace of each preset, and of each lane of the first race."""
    for card in presets():
        record(request_of(card), trace_file(card.name))
    race = races()[0]
    for lane in race.lanes:
        request = RunRequest(race.prompt, family(), lane, max_new_tokens=race.max_new_tokens)
        record(request, race_file(lane))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
