"""Reads the tuning that a visitor asks for on the Tune tab, and runs it as a job that writes its record line by
line."""

import json
import time
from collections.abc import Iterator, Mapping

from app import fence
from app.controls import RANGES, text
from app.own import own
from app.settings import LIMITS, Limits, model_paths
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.parts.loading import ModelPaths, load_models
from engine.printable import one_line
from engine.tune.candidates import worth_trying
from engine.tune.prompt_sample import PromptText, Sample, prompts_in
from engine.tune.tuning import Tuning
from engine.tune.tuning_request import TuningRequest
from presets.fetched import check_there
from presets.tuning import TEXTS, USUAL, first_prompts

TAB = "tune"
EVERY = 5.0
"""Seconds between two answers while the tuning still measures."""
FEWEST = 3
"""Fewest prompts on which a setting must have been tried before it may be an answer while the tuning still measures:
a busy moment spoils the times of one text."""
WORDS = {
    "story": "stories",
    "edit": "edits",
    "template": "templates",
    "code": "code",
    "arithmetic": "sums",
    "operations": "operations",
}
"""The kinds of this page's prompts, in words."""


def tuning_job(values: Mapping[str, object], session: str = "") -> "TuningJob":
    """Return the tuning job for these control values. Raises UserError, one sentence."""
    models = text(values.get("models") or "", "The model")
    numbers = {name: bounds.read(values.get(name)) for name, bounds in RANGES.items()}
    new_tokens = min(int(numbers.pop("max_new_tokens")), LIMITS.tune_tokens)
    chosen = sample(values.get("prompts"), models, int(numbers["seed"]))
    paths = model_paths(models)
    check_there(models)
    if not models:
        paths = own.read(session).paths or paths
    request = TuningRequest(
        paths,
        chosen,
        drafters=None if wants_all(values.get("prompts")) else usual(paths, Sampling(**numbers)),
        new_tokens=new_tokens,
        texts=together(paths, chosen, new_tokens),
        **numbers,
    )
    return TuningJob(request, models)


def wants_all(given: object) -> bool:
    """Return whether the control asks for every drafter that can run. given: as for ``sample``; the caller must have
    called ``sample`` with it before, which refuses what cannot be read."""
    return json.loads(given).get("all") is True  # type: ignore[arg-type]


def usual(paths: ModelPaths, sampling: Sampling) -> tuple[str, ...] | None:
    """Return those drafters of USUAL that can run with these models. If none of USUAL can run, return None, with which
    a ``TuningRequest`` tries every drafter worth trying."""
    able = {cls.key for cls in worth_trying(paths, sampling)}
    return tuple(key for key in USUAL if key in able) or None


def together(
    paths: ModelPaths, found: Sample, new_tokens: int, limits: Limits = LIMITS
) -> tuple[int, ...]:
    """Return the numbers of TEXTS that may share a pass: the KV caches of all of them together are no larger than the
    KV cache of one run may be. A prompt is taken to have at most as many tokens as characters. Raises UserError if one
    text's KV cache is too large."""
    target = load_models(paths, {}).target
    longest = max(len(prompt.text) for prompt in found.prompts) + new_tokens
    megabytes = target.kv_bytes(min(longest, target.max_context)) / 1e6
    if megabytes > limits.kv_megabytes:
        raise UserError(
            f"The longest prompt would hold {megabytes:,.0f} MB of keys and values; this page allows "
            f"{limits.kv_megabytes:,} MB. Take shorter ones."
        )
    return tuple(count for count in TEXTS if count * megabytes <= limits.kv_megabytes)


def sample(given: object, models: str, seed: int, limits: Limits = LIMITS) -> Sample:
    """Return a sample of the prompts that the control names. given: JSON of {"source", "kinds", "text", "name"}.
    models: the family that reads the prompts. Raises UserError."""
    try:
        wish = json.loads(text(given, "The prompts"))
        source, kinds, said, name = (wish[part] for part in ("source", "kinds", "text", "name"))
        fits = isinstance(kinds, list) and isinstance(said, str) and isinstance(name, str)
    except (ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits:
        raise UserError("The prompts could not be read; choose them again.")
    if source == "ours":
        return Sample.of(first_prompts(models, kinds), seed, limits.tune_prompts)
    if len(said.encode("utf-8", "replace")) > limits.tune_bytes:
        raise UserError(
            f"The prompts take more than {limits.tune_kilobytes:,} kB, the most that this page reads; "
            "the command line takes a file of any size."
        )
    texts = list(prompts_in(said, one_line(name[-80:])) if source == "file" else pasted(said))
    if not any(entry.text.strip() for entry in texts):
        raise UserError("Paste a prompt first, or choose a file or prompts of this page.")
    for number, entry in enumerate(texts, 1):
        if len(entry.text) > limits.prompt_characters:
            raise UserError(
                f"Prompt {number} has {len(entry.text):,} characters; this page takes at most "
                f"{limits.prompt_characters:,}."
            )
    return Sample.of(texts, seed, limits.tune_prompts)


def pasted(said: str) -> Iterator[PromptText]:
    """Yield the prompts of a pasted text: one on each line, or, if it has an empty line, separated by empty lines."""
    lines = [line.rstrip() for line in said.strip().splitlines()]
    if "" not in lines:
        yield from map(PromptText, lines)
        return
    block: list[str] = []
    for line in [*lines, ""]:
        if line:
            block.append(line)
        elif block:
            yield PromptText("\n".join(block))
            block = []


class TuningJob:
    """A tuning as a job (``app.seats.Job``). Its record is text with one JSON object on each line."""

    def __init__(self, request: TuningRequest, models: str = "") -> None:
        """models: the name of the family, which is added to the first line."""
        self._tuning = Tuning(request)
        self._lines = self._tuning.lines()
        self._answered = self._closed = False
        self._tried: dict[tuple, int] = {}
        """Setting -> number of prompts on which it was tried."""
        head = next(self._lines)
        self._fewest = min(FEWEST, head["prompts"]["sampled"])
        self._header = written({**head, "family": models})

    def header(self) -> str:
        return self._header

    def steps(self) -> Iterator[str]:
        """Yield the record's lines, and between them answers from the measurements so far, so that a first answer comes
        soon."""
        answered, more = time.monotonic(), False
        for line in self._lines:
            self._answered = line["kind"] == "answer"
            more |= line["kind"] == "setting"
            self._note(line)
            yield written(line)
            if more and line["kind"] == "progress" and time.monotonic() - answered > EVERY:
                lines = self._so_far()
                yield lines
                answered, more = time.monotonic(), '"kind":"answer"' not in lines

    def cancel(self) -> None:
        self._closed = True
        self._lines.close()

    def summary(self) -> str:
        """Return the answer from the measurements so far if the tuning was stopped before its answer, else ""."""
        return self._so_far() if self._closed and not self._answered else ""

    def _so_far(self) -> str:
        lines = self._tuning.answer_so_far()
        for line in lines:
            self._note(line)
        return "".join(written(line) for line in lines if self._closed or self._is_known(line))

    def _note(self, line: Mapping) -> None:
        if line["kind"] == "acceptance":
            self._tried[_setting(line)] = line["prompts"]

    def _is_known(self, line: Mapping) -> bool:
        """Return whether the line may be written before the end: an answer only if its setting was tried on enough
        prompts."""
        shown = line.get("best_tried", line)
        return line["kind"] != "answer" or self._tried.get(_setting(shown), 0) >= self._fewest


def _setting(line: Mapping) -> tuple:
    return line["drafter"], line["size"], line["verifier"]


def written(line: Mapping[str, object]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"


fence.MAKERS |= {TAB: tuning_job}
