"""A visitor's tuning: what the Tune tab asks for, and the job that writes its record, a line a step."""

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
from presets import prompts
from presets.families import converses
from presets.fetched import check_there
from presets.listed import KINDS, TURNS

TAB = "tune"
OURS = 3
"""Prompts of each kind of this page."""
USUAL = ("chain", "dyspec", "prompt_lookup", "suffix", "eagle", "dflash")
"""The drafters that are tried unless a visitor wants all: one of each sort, most of them known to serving engines."""
TEXTS = (1, 2, 4, 8)
"""Numbers of texts that share a pass. A pass over more would hold up other visitors for long."""
EVERY = 5.0
"""Seconds between two answers while it is still being measured."""
FEWEST = 3
"""Prompts on which a setting must have been tried before it is told as an answer while it is still being measured: a busy
moment spoils the times of one text."""
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
    """The tuning that these control values ask for. Raises UserError, one sentence."""
    models = text(values.get("models") or "", "The model")
    numbers = {name: wanted.read(values.get(name)) for name, wanted in RANGES.items()}
    new_tokens = min(int(numbers.pop("max_new_tokens")), LIMITS.tune_tokens)
    found = sample(values.get("prompts"), models, int(numbers["seed"]))
    paths = model_paths(models)
    check_there(models)
    if not models:
        paths = own.read(session).paths or paths
    request = TuningRequest(
        paths,
        found,
        drafters=None if wants_all(values.get("prompts")) else usual(paths, Sampling(**numbers)),
        new_tokens=new_tokens,
        texts=together(paths, found, new_tokens),
        **numbers,
    )
    return TuningJob(request, models)


def wants_all(given: object) -> bool:
    """Whether the control asks for every drafter that can run. given: as for ``sample``, which has read it."""
    return json.loads(given).get("all") is True  # type: ignore[arg-type]


def usual(paths: ModelPaths, sampling: Sampling) -> tuple[str, ...] | None:
    """The usual drafters that can run with these models; None, for all that can, where there are none."""
    able = {cls.key for cls in worth_trying(paths, sampling)}
    return tuple(key for key in USUAL if key in able) or None


def together(
    paths: ModelPaths, found: Sample, new_tokens: int, limits: Limits = LIMITS
) -> tuple[int, ...]:
    """How many texts may share a pass: as many as hold no more keys and values together than a run may. A prompt is taken
    to have at most as many tokens as characters. Raises UserError where a single text holds too many."""
    target = load_models(paths, {}).target
    longest = max(len(one.text) for one in found.prompts) + new_tokens
    each = target.kv_bytes(min(longest, target.max_context)) / 1e6
    if each > limits.kv_megabytes:
        raise UserError(
            f"The longest prompt would hold {each:,.0f} MB of keys and values; this page allows "
            f"{limits.kv_megabytes:,} MB. Take shorter ones."
        )
    return tuple(count for count in TEXTS if count * each <= limits.kv_megabytes)


def sample(given: object, models: str, seed: int, limits: Limits = LIMITS) -> Sample:
    """The prompts that the control asks for. given: JSON of {"source", "kinds", "text", "name"}. models: the family that
    reads them. Raises UserError."""
    try:
        wish = json.loads(text(given, "The prompts"))
        source, kinds, said, name = (wish[part] for part in ("source", "kinds", "text", "name"))
        fits = isinstance(kinds, list) and isinstance(said, str) and isinstance(name, str)
    except (ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits:
        raise UserError("The prompts could not be read; choose them again.")
    if source == "ours":
        return Sample.of(_of_this_page(kinds, models), seed, limits.tune_prompts)
    if len(said.encode("utf-8", "replace")) > limits.tune_bytes:
        raise UserError(
            f"The prompts take more than {limits.tune_kilobytes:,} kB, the most that this page reads; "
            "the command line takes a file of any size."
        )
    found = list(prompts_in(said, one_line(name[-80:])) if source == "file" else pasted(said))
    if not any(one.text.strip() for one in found):
        raise UserError("Paste a prompt first, or choose a file or prompts of this page.")
    for number, one in enumerate(found, 1):
        if len(one.text) > limits.prompt_characters:
            raise UserError(
                f"Prompt {number} has {len(one.text):,} characters; this page takes at most "
                f"{limits.prompt_characters:,}."
            )
    return Sample.of(found, seed, limits.tune_prompts)


def _of_this_page(kinds: list, models: str) -> Iterator[PromptText]:
    """The first few prompts of each kind; of all kinds where none is named. A family that converses gets turns instead."""
    known = TURNS if converses(models) else KINDS
    for kind in [one for one in known if one in kinds] or known:
        yield from (PromptText(one["prompt"], kind) for one in prompts(kind)[:OURS])


def pasted(said: str) -> Iterator[PromptText]:
    """The prompts of a pasted text: one on each line, or, where there is an empty line, separated by empty lines."""
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
    """A tuning as the page advances it. Its record is text, a JSON object on each line."""

    def __init__(self, request: TuningRequest, models: str = "") -> None:
        """models: the name of the family, which the first line tells, too."""
        self._tuning = Tuning(request)
        self._lines = self._tuning.lines()
        self._answered = self._closed = False
        self._tried: dict[tuple, int] = {}
        """Prompts on which each setting was tried."""
        head = next(self._lines)
        self._fewest = min(FEWEST, head["prompts"]["sampled"])
        self._header = written({**head, "family": models})

    def header(self) -> str:
        return self._header

    def steps(self) -> Iterator[str]:
        """Between its lines stand answers from what was measured so far, so that the first comes soon."""
        answered, more = time.monotonic(), False
        for line in self._lines:
            self._answered = line["kind"] == "answer"
            more |= line["kind"] == "setting"
            self._note(line)
            yield written(line)
            if more and line["kind"] == "progress" and time.monotonic() - answered > EVERY:
                told = self._so_far()
                yield told
                answered, more = time.monotonic(), '"kind":"answer"' not in told

    def cancel(self) -> None:
        self._closed = True
        self._lines.close()

    def summary(self) -> str:
        """Where the tuning was stopped: the answer that follows from what was measured."""
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
        """Whether the line may be told before the end: an answer only where enough is known of its setting."""
        shown = line.get("best_tried", line)
        return line["kind"] != "answer" or self._tried.get(_setting(shown), 0) >= self._fewest


def _setting(line: Mapping) -> tuple:
    return line["drafter"], line["size"], line["verifier"]


def written(line: Mapping[str, object]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"


fence.MAKERS |= {TAB: tuning_job}
