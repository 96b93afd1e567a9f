"""The examples that the page lists: for Watch a prompt and a drafter, for Compare a prompt and lanes."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from engine.errors import UserError

HERE = Path(__file__).parent
KINDS = ("story", "edit", "template", "code", "arithmetic", "operations")
TURNS = (
    "coding",
    "maths",
    "writing",
    "summarisation",
    "editing",
    "questions",
    "json",
    "multilingual",
)
"""Workloads whose prompts are a user's turns, for a target that converses."""


@dataclass(frozen=True)
class Preset:
    """An example of Watch: all settings of a run, and a text that says what to look for in it.

    kind: the workload to which the prompt belongs. models: the family that runs it, see ``presets.family``. prompt: the
    text itself. turns: the conversation before the prompt, for a family that converses. verifier: None for the
    drafter's own rule. json_schema: a schema that the text must follow, or None. python_names, heal: see RunRequest.
    holds: conditions that make ``look_for`` true of the finished trace, see ``presets.conditions``.
    """

    name: str
    title: str
    kind: str
    prompt: str
    drafter: str
    look_for: str
    options: dict = field(default_factory=dict)
    verifier: str | None = None
    rule_options: dict = field(default_factory=dict)
    json_schema: str | None = None
    python_names: bool = False
    heal: bool = False
    models: str = ""
    turns: tuple[dict[str, str], ...] = ()
    temperature: float = 0.0
    max_new_tokens: int = 128
    holds: tuple[str, ...] = ()

    def to_dict(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Lane:
    """One drafter of a race. name: the tag of its lines, see ``lane_names``. options: the drafter's options; ``draft``
    names another draft model. verifier: None for the drafter's own rule."""

    name: str
    drafter: str
    options: dict
    verifier: str | None = None


@dataclass(frozen=True)
class RacePreset:
    """An example of Compare: a prompt, the drafters that race on it, and what to look for.

    lanes: plain decoding comes first. models: see Preset. holds: see Preset; here conditions name a lane.
    """

    name: str
    title: str
    kind: str
    prompt: str
    look_for: str
    lanes: tuple[Lane, ...]
    holds: tuple[str, ...] = ()
    models: str = ""
    temperature: float = 0.0
    max_new_tokens: int = 128


def lane_names(drafters: Sequence[str]) -> list[str]:
    """Return a name for each lane: its drafter's key; a second lane of the same drafter is called KEY-2, and so on."""
    counts: Counter[str] = Counter()
    names = []
    for key in drafters:
        counts[key] += 1
        names.append(key if counts[key] == 1 else f"{key}-{counts[key]}")
    return names


@cache
def prompts(kind: str) -> list[dict]:
    """Return the prompts of a workload, each {"id", "prompt", "note", ...}. Raises UserError for an unknown
    workload."""
    if kind not in (*KINDS, *TURNS):
        raise UserError(f"There is no workload {kind!r}; known are: {', '.join((*KINDS, *TURNS))}.")
    folder = HERE / "prompts" / ("chat" if kind in TURNS else "")
    lines = (folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def prompt_of(kind: str, identifier: str) -> str:
    """Return the text of one prompt of a workload. Raises UserError if the workload or the prompt is unknown."""
    for entry in prompts(kind):
        if entry["id"] == identifier:
            return entry["prompt"]
    raise UserError(f"The workload {kind} has no prompt {identifier!r}.")


@cache
def presets() -> tuple[Preset, ...]:
    """Return the examples of Watch, in order. The first is on the screen when the page opens."""
    return tuple(
        Preset(**card | {name: tuple(card.get(name, ())) for name in ("holds", "turns")})
        for card in _cards("presets.json")
    )


@cache
def races() -> tuple[RacePreset, ...]:
    """Return the examples of Compare, in order. The first is on the screen when Compare opens."""
    return tuple(_race(card) for card in _cards("races.json"))


def _race(card: dict) -> RacePreset:
    """Return the race of this card, in which a lane is a drafter's key, or {"drafter", "options", "verifier"}."""
    lanes = [lane if isinstance(lane, dict) else {"drafter": lane} for lane in card["lanes"]]
    names = lane_names([lane["drafter"] for lane in lanes])
    parsed = (
        Lane(name, lane["drafter"], lane.get("options", {}), lane.get("verifier"))
        for name, lane in zip(names, lanes, strict=True)
    )
    holds = tuple(card.get("holds", ()))
    return RacePreset(**{**card, "lanes": tuple(parsed), "holds": holds})


def _cards(file: str) -> list[dict]:
    """Return the cards in this file, each with the text of its prompt. In the file, a card may name a shipped prompt by
    its id instead."""
    cards = json.loads((HERE / file).read_text(encoding="utf-8"))
    for card in cards:
        identifier = card.pop("prompt_id", None)
        if identifier is not None:
            card["prompt"] = prompt_of(card["kind"], identifier)
    return cards
