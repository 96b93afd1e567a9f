"""``engine tune``: which drafter, how many tokens, from how many texts on it does not pay, and why; the answer
first."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.cli import terminal
from engine.cli.tuning_text import told
from engine.errors import UserError
from engine.parts.loading import ModelPaths
from engine.tune.other_machines import pasted
from engine.tune.prompt_sample import PromptText, Sample
from engine.tune.tuning import Tuning
from engine.tune.tuning_request import OtherMachine, TuningRequest


def tune(
    arguments: argparse.Namespace,
    models: ModelPaths,
    usual_prompts: Callable[[], Sequence[PromptText]],
    machine_named: Callable[[str], OtherMachine],
) -> int:
    """Run the command; returns the exit code. usual_prompts: returns the prompts for measuring if no file is named."""
    machines = [machine_named(name) for name in arguments.machine]
    if arguments.costs is not None:
        machines.append(pasted(arguments.costs))
    if arguments.prompts is None:
        sample = Sample.of(usual_prompts(), arguments.seed)
    else:
        sample = Sample.of_file(Path(arguments.prompts), arguments.seed)
    names = ("temperature", "top_k", "top_p", "seed", "new_tokens", "dtype", "device", "ray")
    keys = None if arguments.drafters is None else arguments.drafters.split(",")
    request = TuningRequest(
        models,
        sample,
        drafters=None if keys is None else tuple(key.strip() for key in keys),
        record=None if arguments.record is None else Path(arguments.record),
        machines=tuple(machines),
        **{name: getattr(arguments, name) for name in names},
    )
    return _show(Tuning(request), arguments.json)


def _show(tuning: Tuning, as_json: bool) -> int:
    """Write the result of a tuning to the terminal. With ``as_json``, each line is written as it comes. Otherwise the
    answer is written as text at the end, or when a signal or an error stops the work. Returns the exit code."""
    bar, lines, failure = terminal.Bar(), [], None

    def take(line: dict) -> None:
        if line["kind"] == "progress":
            left = line["seconds_left"]
            bar(line["doing"], line["done"], "" if left is None else _time(left))
            return
        lines.append(line)
        if as_json:
            terminal.write(json.dumps(line, ensure_ascii=False) + "\n")

    with terminal.listening() as interrupts:
        coming = tuning.lines()
        try:
            for line in coming:
                take(line)
                if interrupts.signal is not None:
                    break
        except UserError as error:
            failure = error
        finally:
            coming.close()
            bar.close()
        if failure is not None or interrupts.signal is not None:
            for line in tuning.answer_so_far():
                take(line)
        if not as_json:
            terminal.write(told(lines))
        if failure is None and not any(line["kind"] == "answer" for line in lines):
            terminal.say("stopped before there was an answer")
    if failure is not None:
        raise failure
    return 0 if interrupts.signal is None else 128 + interrupts.signal


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
