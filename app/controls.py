"""From what the visitor set to a request the engine can take, within the page's limits."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from app.settings import LIMITS, Limits, model_paths
from engine.errors import UserError
from engine.run import RunRequest


@dataclass(frozen=True)
class Range:
    """A number that the visitor sets: its name in a sentence, its bounds, its default."""

    name: str
    low: float
    high: float
    default: float
    whole: bool = True

    def read(self, given: object) -> float:
        """The number given, or the default for an empty field. Raises UserError outside."""
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
        """The nearest number inside the bounds; the default for what is no number."""
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

FIELDS = ("prompt", "drafter", "options", "verifier", *RANGES)
"""The order in which the page hands its controls to an event."""


def request(values: Mapping[str, object], limits: Limits = LIMITS) -> RunRequest:
    """The run that these control values ask for. Raises UserError, one sentence."""
    drafter = text(values.get("drafter"), "The drafter")
    return RunRequest(
        prompt=prompt(values.get("prompt"), limits),
        drafter=drafter,
        options=options(values.get("options"), drafter),
        verifier=text(values.get("verifier") or "", "The verifier") or None,
        models=model_paths(),
        **{name: wanted.read(values.get(name)) for name, wanted in RANGES.items()},
    )


def prompt(given: object, limits: Limits = LIMITS) -> str:
    """The prompt, if there is one and it is short enough."""
    words = text(given or "", "The prompt")
    if not words.strip():
        raise UserError("Write a prompt first, or pick an example.")
    if len(words) > limits.prompt_characters:
        raise UserError(
            f"The prompt has {len(words):,} characters; "
            f"this page takes at most {limits.prompt_characters:,}."
        )
    return words


def options(given: object, drafter: str) -> dict:
    """The options set for this drafter; those of another drafter are left behind.

    given: {"drafter": key, "values": {name: value}} as JSON, from the option controls.
    """
    if not given:
        return {}
    try:
        parsed = json.loads(text(given, "The options"))
        values = parsed["values"] if parsed["drafter"] == drafter else {}
        if not isinstance(values, dict):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise UserError("The options could not be read; pick the drafter again.") from None
    return {str(name): value for name, value in values.items()}


def lanes(given: object, limits: Limits = LIMITS) -> list[dict]:
    """The lanes of a comparison, each {"drafter", "values": {name: value}, "verifier"}.

    given: a JSON list of such lanes; a verifier left out or "" is the automatic one.
    What drafters, options and verifiers there are, the engine knows.
    """
    try:
        chosen = [
            (lane["drafter"], lane["values"], lane.get("verifier", ""))
            for lane in json.loads(text(given, "The lanes"))
        ]
        if not all(isinstance(values, dict) for _, values, _ in chosen):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UserError("The lanes could not be read; pick the example again.") from None
    if not 2 <= len(chosen) <= limits.lanes:
        raise UserError(f"A comparison has two to {limits.lanes} lanes, not {len(chosen)}.")
    return [
        {
            "drafter": text(key, "The drafter"),
            "values": values,
            "verifier": text(rule, "The verifier"),
        }
        for key, values, rule in chosen
    ]


def text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise UserError(f"{name} must be text.")
    return given
