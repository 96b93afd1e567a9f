"""Turns the visitor's settings into a request that the engine can take, within the page's limits."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.menu import lacking, missing
from app.settings import LIMITS, Limits, model_paths
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter as drafter_class
from engine.parts.drafts import KIND, ROLE, with_named_draft
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, rule_for
from presets import asked
from presets.fetched import check_there


@dataclass(frozen=True)
class Range:
    """A number that the visitor sets: its name in error messages, its bounds, its default, and whether it is whole."""

    name: str
    low: float
    high: float
    default: float
    whole: bool = True

    def read(self, given: object) -> float:
        """Return ``given`` as a number, or the default for an empty field. Raises UserError outside the bounds."""
        if given is None or given == "":
            given = self.default
        try:
            number = float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not self.low <= number <= self.high or (self.whole and not number.is_integer()):
            noun = "a whole number" if self.whole else "a number"
            raise UserError(f"{self.name} must be {noun} from {self.low:,} to {self.high:,}.")
        return int(number) if self.whole else number

    def clamp(self, given: object) -> float:
        """Return the number inside the bounds that is nearest to ``given``; the default if that is no finite number."""
        try:
            number = float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return self.default
        if not math.isfinite(number):
            return self.default
        number = min(max(number, self.low), self.high)
        return int(number) if self.whole else number


RANGES = {
    "temperature": Range("Temperature", 0, 2, 0, whole=False),
    "top_k": Range("Top-k", 0, 200, 0),
    "top_p": Range("Top-p", 0.05, 1, 1, whole=False),
    "seed": Range("Seed", 0, 2**31 - 1, 0),
    "max_new_tokens": Range("New tokens", 1, LIMITS.new_tokens, min(96, LIMITS.new_tokens)),
}

FIELDS = ("prompt", "heal", "pair", "json_schema", "python_names", *RANGES, "models")
"""The order in which the page hands Watch's controls to an event."""


@dataclass(frozen=True)
class Pair:
    """A drafter with its options, and a rule with its options. verifier None: the drafter's own rule.

    The engine checks later that these drafters, rules and options exist.
    """

    drafter: str
    options: dict
    verifier: str | None
    rule_options: dict


def request(values: Mapping[str, object], limits: Limits = LIMITS) -> RunRequest:
    """Return the run request for these control values. Raises UserError, one sentence."""
    return request_for(pair(values.get("pair")), values, limits)


def request_for(chosen: Pair, values: Mapping[str, object], limits: Limits = LIMITS) -> RunRequest:
    """Return the run request for this pair and these other control values. Raises UserError, one sentence."""
    models = text(values.get("models") or "", "The model")
    numbers = {name: bounds.read(values.get(name)) for name, bounds in RANGES.items()}
    paths, options = _with_draft(chosen, model_paths(models))
    check_there(models)
    return RunRequest(
        **asked(models, prompt(values.get("prompt"), limits)),
        drafter=chosen.drafter,
        options=options,
        verifier=chosen.verifier,
        rule_options=_of_rule(chosen, float(numbers["temperature"])),
        models=paths,
        json_schema=json_schema(values.get("json_schema"), limits),
        python_names=values.get("python_names") is True,
        heal=values.get("heal") is True,
        **numbers,
    )


def refuse_missing(wanted: RunRequest) -> None:
    """Raise UserError, one sentence, if the models of this run lack a part that its drafter needs."""
    cls, paths = drafter_class(wanted.drafter), wanted.models
    parts = lacking(cls.needs, paths.parts)
    if not parts:
        return
    if paths.target == model_paths(paths.family).target:
        why = missing(cls.needs, paths.family)
    else:
        why = f"needs {parts}, and none is loaded beside {Path(paths.target).name}"
    raise UserError(f"{cls.title} cannot run here: it {why}.")


def _with_draft(chosen: Pair, paths: ModelPaths) -> tuple[ModelPaths, dict]:
    """Return the models with the chosen draft model, and the options without that choice. Raises UserError for a draft
    model that this page does not have; a drafter that takes no draft model refuses the option itself."""
    if drafter_class(chosen.drafter).needs.get(ROLE) != KIND:
        return paths, dict(chosen.options)
    return with_named_draft(paths, chosen.options)


def _of_rule(chosen: Pair, temperature: float) -> dict:
    """Return the chosen rule options that the judging rule declares. The automatic rule changes with the temperature,
    so options of another rule may be among those chosen; they are left out."""
    if not chosen.rule_options:
        return {}
    sampling = Sampling(temperature=temperature)
    rule = rule_for(chosen.verifier, drafter_class(chosen.drafter), sampling)
    declared = {option.name for option in rule.options}
    return {name: value for name, value in chosen.rule_options.items() if name in declared}


def prompt(given: object, limits: Limits = LIMITS) -> str:
    """Return the prompt. Raises UserError if it is empty or too long."""
    words = text(given or "", "The prompt")
    if not words.strip():
        raise UserError("Write a prompt first, or pick an example.")
    if len(words) > limits.prompt_characters:
        raise UserError(
            f"The prompt has {len(words):,} characters; "
            f"this page takes at most {limits.prompt_characters:,}."
        )
    return words


def json_schema(given: object, limits: Limits = LIMITS) -> str | None:
    """Return the JSON schema that the text must follow, or None for any text. Raises UserError if it is too long."""
    schema = text(given or "", "The JSON schema").strip()
    if len(schema) > limits.schema_characters:
        raise UserError(
            f"The JSON schema has {len(schema):,} characters; "
            f"this page takes at most {limits.schema_characters:,}."
        )
    return schema or None


def pair(given: object) -> Pair:
    """Return the pair in a control's value, JSON of {"drafter", "options", "verifier", "rule_options"}. Raises
    UserError."""
    try:
        return _pair(json.loads(text(given, "The drafter")))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UserError("The drafter and its rule could not be read; pick them again.") from None


def lanes(given: object, limits: Limits = LIMITS) -> list[Pair]:
    """Return the lanes of a comparison. given: a JSON list of pairs, each as ``pair`` reads it. Raises UserError."""
    try:
        chosen = [_pair(lane) for lane in json.loads(text(given, "The lanes"))]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UserError("The lanes could not be read; pick the example again.") from None
    if not 2 <= len(chosen) <= limits.lanes:
        raise UserError(f"A comparison has two to {limits.lanes} lanes, not {len(chosen)}.")
    return chosen


def _pair(given: dict) -> Pair:
    """Return the pair in this dictionary. Raises TypeError, KeyError or UserError for anything other than a pair."""
    if not isinstance(given, dict):
        raise TypeError
    tables = [given.get(name) or {} for name in ("options", "rule_options")]
    if not all(isinstance(table, dict) for table in tables):
        raise TypeError
    options, rule_options = tables
    rule = text(given.get("verifier") or "", "The verifier")
    return Pair(text(given["drafter"], "The drafter"), options, rule or None, rule_options)


def text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise UserError(f"{name} must be text.")
    return given
