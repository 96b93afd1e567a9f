"""A run as the page and the command line know it: a request in, the lines of a trace out."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.constraint import Constraint
from engine.drafters import drafter as drafter_class
from engine.errors import UserError
from engine.json_schema import JsonSchema
from engine.loops import run_loop
from engine.memory import Memory
from engine.options import resolve
from engine.parts.loading import ModelPaths, Models, load_models
from engine.policies.draft_size import settle_size
from engine.progress import Tell, silent
from engine.sampling import Sampling
from engine.target.language_model import LanguageModel
from engine.target.prompt import PromptReading
from engine.text import TextRequest
from engine.threads import torch_threads
from engine.trace import to_line, to_step_line
from engine.trace.recording import Recorder, Setting
from engine.verifiers import Verifier, verifier

MAX_NEW_TOKENS = 100_000
ENGINE_LOCK = threading.Lock()
"""Held for each step, so that no lane's clock contains another's work."""


@dataclass(frozen=True)
class RunRequest:
    """What a user asks for. Everything is checked by ``open_run``."""

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
    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    recorded: bool = True
    """False: lines hold the output alone, and steps may be judged on the device."""

    json_schema: str | None = None
    """A JSON schema that the text must follow."""

    memory: Memory | None = None
    """The visitor's memory, for drafters that learn; a fresh one if None."""

    most_nodes: int | None = None
    """Most nodes of a step; a run whose drafter makes more ends with a sentence."""


def _kv_bytes(models: Models, columns: int) -> int:
    """What the language models of a run need for a text of so many tokens."""
    readers = [models.target, *models.parts.values()]
    return sum(one.kv_bytes(columns) for one in readers if isinstance(one, LanguageModel))


def open_run(request: RunRequest, tell: Tell = silent) -> "Run":
    """Check the request, load what it needs, and return a run that has not begun.

    tell: hears what takes a while. Raises UserError, one sentence, for anything that does not fit.
    """
    return open_runs([request], tell)[0]


def open_runs(requests: Sequence[RunRequest], tell: Tell = silent) -> list["Run"]:
    """The same for several that will take turns. Those that feed one target the same tokens read
    them once; each is charged for it (``engine.target.prompt``)."""
    readings: dict[tuple, PromptReading] = {}
    return [_open(request, readings, tell) for request in requests]


def _open(request: RunRequest, readings: dict[tuple, PromptReading], tell: Tell) -> "Run":
    sampling = Sampling(request.temperature, request.top_k, request.top_p, request.seed)
    cls = drafter_class(request.drafter)
    options = resolve(f"drafter {cls.key}", cls.options, request.options)
    rule = pick_verifier(request.verifier, cls, sampling, request.rule_options)
    lossless = rule.lossless_with(cls.kinds(sampling))
    if not 1 <= request.max_new_tokens <= MAX_NEW_TOKENS:
        raise UserError(
            f"The number of new tokens must lie between 1 and {MAX_NEW_TOKENS}, "
            f"not {request.max_new_tokens}."
        )
    if not request.prompt.strip():
        raise UserError("The prompt is empty.")
    models = load_models(request.models, cls.needs, request.dtype, request.device)
    tokens = tokenize(models, request.prompt)
    with ENGINE_LOCK:  # it may have to be measured
        options = settle_size(cls, options, models, sampling, tell)
    setting = Setting(
        {"key": cls.key, "title": cls.title, "family": cls.family, "options": options},
        {
            "key": rule.key,
            "title": rule.title,
            "lossless": lossless,
            "same_text": rule.same_text and lossless,
            "options": rule.settings,
            "sentences": dict(rule.sentences),
        },
        sampling,
        cls.loop,
        request.json_schema or None,
        rule,
    )
    recorder = Recorder(models.target, setting, request.prompt, tokens)
    drafter = cls.build(options, models)
    key = (id(models.target), *tokens)
    reading = readings.setdefault(key, PromptReading(tokens[:-1]))
    reading.expect(drafter.feature_layers)
    wanted = TextRequest(
        drafter,
        rule,
        sampling,
        tokens,
        request.max_new_tokens,
        memory=request.memory,
        constraint=_constraint(request, models.target),
        most_nodes=request.most_nodes,
    )
    steps = run_loop(models.target, wanted, request.recorded, reading)
    columns = min(len(tokens) + request.max_new_tokens, models.target.max_context) + 1
    kv_bytes = _kv_bytes(models, columns)
    return Run(recorder, steps, request.recorded, kv_bytes, models.target.torch_threads)


def _constraint(request: RunRequest, target: LanguageModel) -> Constraint | None:
    if not (request.json_schema or "").strip():
        return None
    vocabulary, ends = target.vocab_size, target.end_tokens
    return JsonSchema(request.json_schema, target.tokenizer, vocabulary, ends)


def pick_verifier(key: str | None, cls, sampling: Sampling, options: dict) -> Verifier:
    """The rule asked for, or the drafter's default, with these options."""
    if key is None:
        key = cls.default_greedy_verifier if sampling.greedy else cls.default_verifier
    rule = verifier(key, options)
    if rule.only_greedy and not sampling.greedy:
        raise UserError(f"The verifier {key} works at temperature 0 only.")
    return rule


def tokenize(models: Models, prompt: str) -> list[int]:
    """The prompt as the target is fed it. Raises UserError where it leaves no room."""
    try:
        tokens = models.target.tokenizer(prompt)["input_ids"]
    except (UnicodeError, TypeError):
        raise UserError("The prompt is no valid Unicode text.") from None
    if not tokens:
        raise UserError("The prompt is empty.")
    if max(tokens) >= models.target.embeddings:
        raise UserError(
            f"The prompt holds the token {max(tokens)}, but {models.target.name} knows only "
            f"{models.target.embeddings} tokens: its tokenizer does not belong to it."
        )
    room = models.target.max_context
    if len(tokens) >= room:
        raise UserError(
            f"The prompt has {len(tokens)} tokens; the context of {models.target.name} "
            f"holds {room}, of which at least one must stay free."
        )
    return tokens


class Run:
    """One run: its header, its steps as they come, its summary. Not calling next is a pause."""

    def __init__(
        self,
        recorder: Recorder,
        steps: Iterator,
        recorded: bool = True,
        kv_bytes: int = 0,
        threads: int | None = None,
    ) -> None:
        """kv_bytes: of keys and values that its text may need at most. threads: of torch while a step
        is taken; None is as many as it has."""
        self._threads = threads
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
            try:
                with ENGINE_LOCK, torch_threads(self._threads):
                    step = next(self._steps, None)
            except BaseException as reason:
                self._end("error" if isinstance(reason, Exception) else "cancelled")
                raise
            if step is None:
                self.finished = True
                return None
            entry = self._recorder.step_line if self._recorded else self._recorder.brief_line
            line = to_step_line(entry(step))
            self._recorder.count(step)  # only what has a line
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

    def text(self, tokens: list[int]) -> str:
        """Tokens decoded together."""
        return self._recorder.pieces.text(tokens)

    @property
    def milliseconds(self) -> float:
        """Engine time so far."""
        return self._recorder.milliseconds

    def summary(self) -> str:
        """The summary line; of a run that has not ended it says cancelled."""
        ended_by = self._ended_by or (None if self.finished else "cancelled")
        return to_line(self._recorder.summary_line(ended_by))
