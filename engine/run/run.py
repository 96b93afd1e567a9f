"""The last stage of a run: the header of its trace, its steps as they come, its summary. To pause, do not call next."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

from engine.chat.json_schema import JsonSchema
from engine.chat.prompt_end import PromptEnd
from engine.chat.python_names import PythonNames
from engine.core.constraint import Constraint
from engine.core.drafter import Drafter
from engine.core.ending import StopStrings
from engine.core.load import Expected
from engine.core.prompt import PART, PromptReading
from engine.core.rule import Verifier
from engine.core.step import Clock
from engine.core.text import TextRequest
from engine.core.threads import ENGINE_LOCK, torch_threads
from engine.loops import run_loop
from engine.run.opened import Opened
from engine.sizes.calibration import observed
from engine.sizes.draft_size import watched
from engine.sizes.preparing import prepare
from engine.trace import to_line, to_step_line
from engine.trace.recording import Recorder


def begin(openings: Sequence[Opened], in_parts: bool = False) -> list[Run]:
    """Runs of these plans, which will take turns. Runs with the same prompt tokens and the same target share one
    computation of the prompt; its time counts for each run (``engine.core.prompt``). in_parts: a long prompt is read in
    several turns, and in each of these turns a run yields an empty line."""
    # the first pass of a single unrecorded run may also read the prompt; a trace shows the two times separately
    apart = len(openings) > 1 or any(opened.plan.request.recorded for opened in openings)
    readings: dict[tuple, PromptReading] = {}

    def reading_for(opened: Opened) -> PromptReading | None:
        tokens = opened.prompt.tokens
        key = (id(opened.models.target), *tokens)
        return readings.setdefault(key, PromptReading(tokens[:-1])) if apart else None

    return [Run(opened, reading_for(opened), in_parts) for opened in openings]


class Run:
    """One run of an opened plan."""

    def __init__(
        self, opened: Opened, reading: PromptReading | None = None, in_parts: bool = False
    ) -> None:
        """reading: the passes over the prompt, possibly shared with other runs; with None, the first pass over a draft
        may include the prompt. in_parts: see ``begin``."""
        plan, models, request = opened.plan, opened.models, opened.plan.request
        rule = plan.rule(plan.rule_options)
        setting, prompt = opened.setting(rule), opened.prompt
        self._recorder = Recorder(
            models.target, setting, prompt.text, prompt.tokens, request.messages
        )
        drafter = _built(opened)
        if reading is not None:
            reading.expect(drafter.feature_layers, drafter.feature_rows)
        self._reading = None
        if in_parts and reading is not None and reading.unread > PART:
            self._reading = reading
        self._fresh = partial(models.target.session, opened.length + 1, drafter.feature_layers)
        text = _text(opened, drafter, rule)
        self._steps = run_loop(models.target, text, request.recorded, reading)
        self._watched = (
            None  # the draft size that was picked: its measured times are compared with the steps
        )
        if plan.sampling.greedy:
            self._watched = watched(plan.drafter, plan.options, opened.options, models)
        self._threads, self._device = models.target.torch_threads, models.target.device
        self._recorded = request.recorded
        self._ended_by: str | None = None
        self._guard = threading.Lock()
        self.finished = False

    def header(self) -> str:
        return to_line(self._recorder.run_line())

    def steps(self) -> Iterator[str]:
        """Yields the remaining step lines, and "" for each part of a prompt that is read in parts. May be called again
        after a pause."""
        while (line := self.step()) is not None:
            yield line

    def step(self) -> str | None:
        """Make one more step. Returns its line; None after the end; "" after reading a part of the prompt."""
        with self._guard:
            if self.finished:
                return None
            # The recorder is limited as well: torch's threads spin after their work and would slow the next pass.
            with torch_threads(self._threads):
                return self._step()

    def _step(self) -> str | None:
        try:
            with ENGINE_LOCK:
                if self._reads_part():
                    return ""
                step = next(self._steps, None)
        except BaseException as reason:
            self._end("error" if isinstance(reason, Exception) else "cancelled")
            raise
        if step is None:
            self.finished = True
            return None
        entry = self._recorder.step_line if self._recorded else self._recorder.brief_line
        line = to_step_line(entry(step))
        self._recorder.count(step)  # after the line, so that only steps with a line count
        if step.stop is not None:
            self._end(None)
        return line

    def _reads_part(self) -> bool:
        """Read the next part of the prompt. Returns False if no part was left."""
        if self._reading is not None:
            clock = Clock(self._device, precise=True)
            if self._reading.read_part(self._fresh, PART, clock):
                return True
            self._reading = None
        return False

    def cancel(self) -> None:
        """End the run and free its memory; harmless after the end.

        Waits for a step that is in progress.
        """
        with self._guard:
            if not self.finished:
                self._end("cancelled")

    def _end(self, reason: str | None) -> None:
        self.finished, self._ended_by, self._reading = True, reason, None
        self._steps.close()
        self._steps = iter(())
        if self._watched is not None and reason != "error":
            observed(*self._watched, *self._recorder.mean_step)

    @property
    def milliseconds(self) -> float:
        """The engine time of the run so far, in milliseconds."""
        return self._recorder.milliseconds

    def summary(self) -> str:
        """The summary line. If the run has not ended, its stop is "cancelled"."""
        ended_by = self._ended_by or (None if self.finished else "cancelled")
        return to_line(self._recorder.summary_line(ended_by))


def _built(opened: Opened) -> Drafter:
    """Build the drafter, and prepare everything that can be prepared before the text is timed."""
    plan, models = opened.plan, opened.models
    with ENGINE_LOCK:  # both may make graphs of models that other runs read
        drafter = plan.drafter.build(opened.options, models)
        coming = Expected(len(opened.prompt.tokens), opened.length)
        prepare(models, drafter, drafter.most_nodes, coming, plan.sampling.greedy)
    return drafter


def _text(opened: Opened, drafter: Drafter, rule: Verifier) -> TextRequest:
    request, target = opened.plan.request, opened.models.target
    return TextRequest(
        drafter,
        rule,
        opened.plan.sampling,
        opened.prompt.tokens,
        request.max_new_tokens,
        memory=request.memory,
        constraint=_constraint(opened),
        most_nodes=request.most_nodes,
        ends=opened.prompt.ends,
        stop_strings=StopStrings(target.tokenizer, opened.stops) if opened.stops else None,
    )


def _constraint(opened: Opened) -> Constraint | None:
    request, target = opened.plan.request, opened.models.target
    if opened.end is not None and opened.end.text:
        return PromptEnd(target, opened.end, opened.plan.sampling.temperature)
    if request.python_names:
        return PythonNames(opened.prompt.text, target.tokenizer, target.vocab_size)
    if request.json_schema is None:
        return None
    return JsonSchema(request.json_schema, target.tokenizer, target.vocab_size, target.end_tokens)
