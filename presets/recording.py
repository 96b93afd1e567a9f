"""Makes finished traces: runs an example once, and keeps its trace for the page."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

from engine.cache_folder import write_whole
from engine.parts.drafts import with_named_draft
from engine.run import RunRequest, open_run
from presets import HERE, asked, family
from presets.fetched import check_there
from presets.listed import Preset, RacePreset


def request_of(example: Preset) -> RunRequest:
    """Return the request for an example's run, with the models of its family."""
    return RunRequest(
        **asked(example.models, example.prompt, example.turns),
        models=family(example.models),
        drafter=example.drafter,
        options=example.options,
        verifier=example.verifier,
        rule_options=example.rule_options,
        json_schema=example.json_schema,
        python_names=example.python_names,
        heal=example.heal,
        temperature=example.temperature,
        max_new_tokens=example.max_new_tokens,
    )


def lane_requests(race: RacePreset) -> Iterator[tuple[str, RunRequest]]:
    """Yield (name of the lane, request for its run) for each lane of a race."""
    for lane in race.lanes:
        models, options = with_named_draft(family(race.models), lane.options)
        request = RunRequest(
            **asked(race.models, race.prompt),
            models=models,
            drafter=lane.drafter,
            options=options,
            verifier=lane.verifier,
            temperature=race.temperature,
            max_new_tokens=race.max_new_tokens,
        )
        yield lane.name, request


def record(request: RunRequest, path: Path) -> None:
    """Run this request and write its compressed trace to ``path``. Raises UserError if its models have yet to be
    fetched."""
    check_there(request.models.family)
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in open_run(request).steps():
        pass  # this first run opens models and compiles passes, so that the timed run need not
    run = open_run(request)
    lines = [run.header(), *run.steps(), run.summary()]
    write_whole(path, gzip.compress("".join(lines).encode(), mtime=0))
    print(f"{os.path.relpath(path, HERE.parent)}: {run.milliseconds:.0f} ms")
