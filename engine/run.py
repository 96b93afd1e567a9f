"""A run as the page and the command line see it: a request in, the lines of a trace out."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from engine.chat.json_schema import JsonSchema
from engine.chat.prompt_reading import read_prompt
from engine.chat.turns import Message
from engine.core.constraint import Constraint
from engine.core.ending import StopStrings
from engine.core.expected import Expected
from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.core.turn import ENGINE_LOCK
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.model.generation import own_sampling, own_stop_strings
from engine.model.language_model import LanguageModel
from engine.parts.hub import name_of
from engine.parts.loading import ModelPaths, Models, load_models
from engine.progress import Tell, silent
from engine.rules import Verifier, verifier
from engine.sizes.calibration import observed
from engine.sizes.draft_size import settle_size, watched
from engine.sizes.preparing import prepare
from engine.trace import to_line, to_step_line
from engine.trace.recording import Recorder, Setting

MAX_NEW_TOKENS = 100_000


@dataclass(frozen=True)
class RunRequest:
    """A user's request. Everything is checked by ``open_run``."""

    prompt: str
    models: ModelPaths
    drafter: str = "chain"
    options: dict = field(default_factory=dict)
    verifier: str | None = None
    rule_options: dict = field(default_factory=dict)
    max_new_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    cuts: tuple[tuple[str, float], ...] = ()
    """Further cuts of p (``engine.core.sampling.CUTS``)."""

    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    recorded: bool = True
    """False: lines hold only the output, and steps may be judged on the device."""

    json_schema: str | None = None
    """A JSON schema that the text must follow."""

    memory: Memory | None = None
    """The visitor's memory, for drafters that learn; a fresh one if None."""

    most_nodes: int | None = None
    """Most nodes of a step; if the drafter makes more, the run ends with a UserError."""

    messages: Sequence[Message] | None = None
    """A conversation that awaits an answer, in place of the prompt."""

    stop: Sequence[str] = ()
    """Strings that end the text once it contains one of them, besides those of the target's generation config."""

    own_sampling: bool = False
    """Sample as the target's generation config says; temperature, top_k, top_p and cuts are not used."""


def _kv_bytes(models: Models, columns: int) -> int:
    """Bytes that the language models of a run need for a text of ``columns`` tokens."""
    readers = [models.target, *models.parts.values()]
    return sum(one.kv_bytes(columns) for one in readers if isinstance(one, LanguageModel))


def open_run(request: RunRequest, tell: Tell = silent) -> "Run":
    """Check the request, load what it needs, and return a run that has not begun.

    tell: is told of slow tasks. Raises UserError, one sentence, for anything that does not fit.
    """
    return open_runs([request], tell)[0]


def open_runs(requests: Sequence[RunRequest], tell: Tell = silent) -> list["Run"]:
    """The same for several runs that will take turns. Runs that feed one target the same tokens read
    them once; each run is charged for the reading (``engine.core.prompt``)."""
    for request in requests:
        _refuse_size(request)
    apart = len(requests) > 1 or any(request.recorded for request in requests)
    readings: dict[tuple, PromptReading] | None = {} if apart else None
    return [_open(request, readings, tell) for request in requests]


def _refuse_size(request: RunRequest) -> None:
    """Raises UserError where the options ask for more nodes in a step than are allowed: before anything is loaded, and
    before other runs begin."""
    cls = drafter_class(request.drafter)
    if request.most_nodes is None or cls.size_option is None:
        return
    wanted = resolve(f"drafter {cls.key}", cls.options, request.options)[cls.size_option]
    if wanted > request.most_nodes:
        label = next(one.label for one in cls.options if one.name == cls.size_option)
        raise UserError(
            f"With these options {cls.title} drafts up to {wanted} nodes in a step; at most "
            f"{request.most_nodes} are allowed here. Set its {(label or cls.size_option).lower()} "
            f"to {request.most_nodes} or fewer."
        )


def _open(request: RunRequest, readings: dict[tuple, PromptReading] | None, tell: Tell) -> "Run":
    """readings: of prompts by other runs, to which this run's is added. None: the first pass over a draft may read the
    prompt as well; a trace shows both apart."""
    if request.own_sampling:
        request = _as_the_model_says(request)
    sampling = Sampling(
        request.temperature, request.top_k, request.top_p, request.seed, request.cuts
    )
    cls = drafter_class(request.drafter)
    options = resolve(f"drafter {cls.key}", cls.options, request.options)
    rule = pick_verifier(request.verifier, cls, sampling, request.rule_options)
    if not 1 <= request.max_new_tokens <= MAX_NEW_TOKENS:
        raise UserError(
            f"The number of new tokens must lie between 1 and {MAX_NEW_TOKENS}, "
            f"not {request.max_new_tokens}."
        )
    if request.messages is None and not request.prompt.strip():
        raise UserError("The prompt is empty.")
    models = load_models(request.models, cls.needs, request.dtype, request.device)
    prompt = read_prompt(models.target, request.prompt, request.messages)
    length = min(len(prompt.tokens) + request.max_new_tokens, models.target.max_context)
    asked = options
    options = settle_size(cls, options, models, sampling, tell)
    stops = (*request.stop, *own_stop_strings(models.target.model.generation_config))
    setting = _setting(cls, options, rule, sampling, request, models, stops)
    recorder = Recorder(models.target, setting, prompt.text, prompt.tokens, request.messages)
    with ENGINE_LOCK:  # both may make graphs of models that other runs read
        drafter = cls.build(options, models)
        coming = Expected(len(prompt.tokens), length)
        prepare(models, drafter, drafter.most_nodes, coming, sampling.greedy)
    reading = None
    if readings is not None:
        key = (id(models.target), *prompt.tokens)
        reading = readings.setdefault(key, PromptReading(prompt.tokens[:-1]))
        reading.expect(drafter.feature_layers, drafter.feature_rows)
    wanted = TextRequest(
        drafter,
        rule,
        sampling,
        prompt.tokens,
        request.max_new_tokens,
        memory=request.memory,
        constraint=_constraint(request, models.target),
        most_nodes=request.most_nodes,
        ends=prompt.ends,
        stop_strings=StopStrings(models.target.tokenizer, stops) if stops else None,
    )
    steps = run_loop(models.target, wanted, request.recorded, reading)
    picked = watched(cls, asked, options, models) if sampling.greedy else None
    kv_bytes, threads = _kv_bytes(models, length + 1), models.target.torch_threads
    return Run(recorder, steps, request.recorded, kv_bytes, picked, threads)


def _as_the_model_says(request: RunRequest) -> RunRequest:
    target = load_models(request.models, {}, request.dtype, request.device).target
    return replace(request, own_sampling=False, **own_sampling(target.model))


def _setting(
    cls,
    options,
    rule: Verifier,
    sampling: Sampling,
    request: RunRequest,
    models: Models,
    stops: Sequence[str],
) -> Setting:
    exact = rule.lossless_with(cls.kinds(sampling))
    rounds = models.target.dtype.itemsize < torch.float32.itemsize
    lossless = exact and not rounds
    parts = {role: name_of(models.folders[role]).rpartition("/")[2] for role in cls.needs}
    labels = {option.name: option.label.lower() for option in cls.options if option.label}
    return Setting(
        {
            "key": cls.key,
            "title": cls.title,
            "family": cls.family,
            "options": options,
            "labels": labels,
            **({"parts": parts} if parts else {}),
        },
        {
            "key": rule.key,
            "title": rule.title,
            "lossless": lossless,
            "same_text": rule.same_text and lossless,
            **({"up_to_rounding": True} if exact and rounds else {}),
            "options": rule.settings,
            "sentences": dict(rule.sentences),
        },
        sampling,
        cls.loop,
        request.json_schema,
        rule,
        tuple(stops),
        request.models.family,
    )


def _constraint(request: RunRequest, target: LanguageModel) -> Constraint | None:
    if request.json_schema is None:
        return None
    vocabulary, ends = target.vocab_size, target.end_tokens
    return JsonSchema(request.json_schema, target.tokenizer, vocabulary, ends)


def pick_verifier(key: str | None, cls, sampling: Sampling, options: dict) -> Verifier:
    """The requested rule, or the drafter's default, with these options."""
    if key is None:
        key = cls.default_greedy_verifier if sampling.greedy else cls.default_verifier
    rule = verifier(key, options)
    if rule.only_greedy and not sampling.greedy:
        raise UserError(f"The verifier {key} works at temperature 0 only.")
    return rule


class Run:
    """One run: its header, its steps as they come, its summary. Not calling next is a pause."""

    def __init__(
        self,
        recorder: Recorder,
        steps: Iterator,
        recorded: bool = True,
        kv_bytes: int = 0,
        picked: tuple[str, int] | None = None,
        threads: int | None = None,
    ) -> None:
        """kv_bytes: the most bytes of keys and values that its text may need. picked: the draft size that
        was picked for it, as ``watched`` returns it: the run's steps are compared with what was measured.
        threads: torch's threads while a step is taken; None means as many as it has."""
        self._picked, self._threads = picked, threads
        self._recorder = recorder
        self.kv_bytes = kv_bytes
        self._recorded = recorded
        self._steps = steps
        self._ended_by: str | None = None
        self._guard = threading.Lock()
        self.finished = False

    def header(self) -> str:
        return to_line(self._recorder.run_line())

    def steps(self) -> Iterator[str]:
        """The remaining step lines; may be called again after a pause."""
        while (line := self.step()) is not None:
            yield line

    def step(self) -> str | None:
        """One more step line, or None after the end."""
        with self._guard:
            if self.finished:
                return None
            # The recorder is limited as well: torch's threads spin after their work and would slow the next pass.
            with torch_threads(self._threads):
                return self._step()

    def _step(self) -> str | None:
        try:
            with ENGINE_LOCK:
                step = next(self._steps, None)
        except BaseException as reason:
            self._end("error" if isinstance(reason, Exception) else "cancelled")
            raise
        if step is None:
            self.finished = True
            return None
        entry = self._recorder.step_line if self._recorded else self._recorder.brief_line
        line = to_step_line(entry(step))
        self._recorder.count(step)  # only steps that have a line
        if step.stop is not None:
            self._end(None)
        return line

    def cancel(self) -> None:
        """End the run and free what it held; harmless after the end.

        Waits for a step that is being taken.
        """
        with self._guard:
            if not self.finished:
                self._end("cancelled")

    def _end(self, reason: str | None) -> None:
        self.finished, self._ended_by = True, reason
        self._steps.close()
        self._steps = iter(())
        if self._picked is not None and reason != "error":
            observed(*self._picked, *self._recorder.mean_step)

    @property
    def milliseconds(self) -> float:
        """Engine time so far."""
        return self._recorder.milliseconds

    def summary(self) -> str:
        """The summary line; for a run that has not ended it says cancelled."""
        ended_by = self._ended_by or (None if self.finished else "cancelled")
        return to_line(self._recorder.summary_line(ended_by))
