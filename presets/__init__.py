"""What the page offers: the embedded models, prompts, presets and finished traces."""

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from engine.errors import UserError
from engine.parts.loading import ModelPaths

HERE = Path(__file__).parent
KINDS = ("story", "edit", "template", "code", "arithmetic", "operations")


@dataclass(frozen=True)
class Preset:
    """A card of the page: a prompt, a drafter that suits it, and what to look for.

    kind: the workload its prompt belongs to. prompt: the text itself.
    """

    name: str
    title: str
    kind: str
    prompt: str
    drafter: str
    look_for: str
    options: dict = field(default_factory=dict)
    temperature: float = 0.0
    max_new_tokens: int = 128

    def to_dict(self) -> dict:
        return asdict(self)


def family() -> ModelPaths:
    """The embedded models."""
    models = HERE / "models"
    roles = {role: models / role for role in ("draft", "diffusion")}
    roles |= {folder.name: folder for folder in sorted((models / "parts").glob("*"))}
    parts = {role: str(folder) for role, folder in roles.items()}
    return ModelPaths(str(models / "target"), parts)


@dataclass(frozen=True)
class RacePreset:
    """A card of Compare: a prompt, the drafters that race on it, and what to look for.

    lanes: keys of drafters, plain decoding first.
    """

    name: str
    title: str
    kind: str
    prompt: str
    look_for: str
    lanes: tuple[str, ...] = ("none", "chain", "dyspec", "prompt_lookup", "ddtree")
    max_new_tokens: int = 128


@cache
def prompts(kind: str) -> list[dict]:
    """The prompts of a workload: {"id", "prompt", "note", ...}. Raises UserError if unknown."""
    if kind not in KINDS:
        raise UserError(f"There is no workload {kind!r}; known are: {', '.join(KINDS)}.")
    lines = (HERE / "prompts" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


@cache
def presets() -> tuple[Preset, ...]:
    """The page's cards, in order."""
    return tuple(Preset(**card) for card in _cards("presets.json"))


@cache
def races() -> tuple[RacePreset, ...]:
    """The cards of Compare, in order; the first is on the screen when it opens."""
    return tuple(RacePreset(**card) for card in _cards("races.json"))


def _cards(file: str) -> list[dict]:
    """The cards in this file, each with its prompt's text in place of the prompt's id."""
    cards = json.loads((HERE / file).read_text(encoding="utf-8"))
    return [{"prompt": _prompt(card.pop("prompt_id"), card), **card} for card in cards]


def _prompt(identifier: str, card: dict) -> str:
    return next(p["prompt"] for p in prompts(card["kind"]) if p["id"] == identifier)


def preset(name: str) -> Preset:
    """Raises UserError that names the known presets."""
    known = {card.name: card for card in presets()}
    if name not in known:
        raise UserError(f"There is no preset {name!r}; known are: {', '.join(known)}.")
    return known[name]


def trace_files() -> dict[str, Path]:
    """Finished traces by preset name."""
    return {path.stem: path for path in sorted((HERE / "traces").glob("*.ndjson"))}


def opening_trace() -> Path:
    """The trace that is on the screen when the page opens."""
    files = trace_files()
    return files.get(presets()[0].name) or next(iter(files.values()))


def race_file(lane: str) -> Path:
    """Where the finished trace of a lane of the first race lies."""
    return HERE / "traces" / "race" / f"{lane}.ndjson"


def race_files() -> dict[str, Path]:
    """Finished traces of the first race by lane, in the order of its lanes."""
    files = {lane: race_file(lane) for lane in races()[0].lanes}
    return {lane: path for lane, path in files.items() if path.exists()}
