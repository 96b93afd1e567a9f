"""Reads the method cards: ``card.toml`` in the folder of a drafter or decoder (``engine/methods/KEY``), or
``presets/methods/KEY.toml`` for rules, loops, studies and other subjects without a folder.

A card says what a method is, what its paper claims, and which run shows it. The measured figures are written into
measured.json by ``python -m presets methods``, never by hand.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from engine.errors import UserError
from engine.finding import folders, outside_folders
from engine.methods import drafters
from engine.rules import verifiers
from presets.listed import HERE as PRESETS
from presets.listed import Preset
from presets.methods.reading import read_card

HERE = Path(__file__).parent
MEASURED = HERE / "measured.json"
PRICES = HERE / "price.json"
SCALING = "scylla"
"""The card whose figure is drawn from the findings of its recipe."""


@dataclass(frozen=True)
class Card:
    """Everything that the page says about one method.

    family, kind, exactness: words of ``presets.methods.reading``. mechanism: how it works, in two sentences. watch:
    what to look for in its example. holds: conditions that make ``watch`` true, see ``presets.conditions``. paper:
    {"title", "authors", "venue", "year"}, or {}. claim: {"text", "setting"}, or {}. part: {"name", "recipe"} of the
    part that the method needs, or {}. example: the name of the example that shows the method, or "". own_example: that
    example, if the card brings it. figure: exhibits on the card, or []. drawn_by: the module whose ``measured`` and
    ``exhibits`` make the figure. loses: one sentence that says why the method saves no time on the embedded models, or
    "". measured: figures of the example's run, or of a recipe's part; {} until they are measured. price: the costs of a
    lossy method, see ``engine.trace.price.Price``; {} until they are measured.
    """

    key: str
    title: str
    family: str
    kind: str
    exactness: str
    needs_training: bool
    mechanism: str
    watch: str
    holds: tuple[str, ...] = ()
    loses: str = ""
    drawn_by: str = ""
    paper: dict = field(default_factory=dict)
    claim: dict = field(default_factory=dict)
    part: dict = field(default_factory=dict)
    example: str = ""
    own_example: Preset | None = None
    figure: list = field(default_factory=list)
    measured: dict = field(default_factory=dict)
    price: dict = field(default_factory=dict)

    @property
    def available(self) -> bool:
        """Return whether the method runs here: the engine has it, and the part that it needs is present."""
        registered = {"drafter": drafters, "decoder": drafters, "rule": verifiers}.get(self.kind)
        if registered is not None and self.key not in registered():
            return False
        return not self.part or self._part_is_here()

    def _part_is_here(self) -> bool:
        models, name = PRESETS / "models", self.part["name"]
        return (models / "parts" / name).is_dir() or (models / name).is_dir()


@cache
def cards() -> dict[str, Card]:
    """Return every card by key, in the order of titles. Raises UserError, one sentence, for an invalid file."""
    own = {key: folder / "card.toml" for key, folder in folders().items()}
    return read_cards(card_files(HERE) | own, _figures(MEASURED), _figures(PRICES))


@cache
def outside_cards() -> tuple[dict[str, Card], dict[str, str]]:
    """Return (key -> card, key -> sentence) for the usable methods from outside. The sentence says why a method has no
    card. These cards show no finished run, because no run of these methods is recorded here."""
    cards, reasons = {}, {}
    for key, folder in outside_folders().items():
        if key not in drafters() or not drafters()[key].yours:
            continue  # ``engine.methods.unusable`` says why
        try:
            (card,) = read_cards({key: folder / "card.toml"}, {}).values()
            cards[key] = replace(card, example="", own_example=None, part={})
        except UserError as error:
            reasons[key] = f"The method {key} has no card: {error}"
    return cards, reasons


def _figures(file: Path) -> dict[str, dict]:
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def card_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in folder.glob("*.toml")}


def read_cards(
    files: Mapping[str, Path],
    measured: Mapping[str, dict],
    prices: Mapping[str, dict] | None = None,
) -> dict[str, Card]:
    """Return the cards in these files, by key. measured: key -> figures of the method. prices: key -> its price."""
    prices = prices or {}
    unsorted = [
        Card(
            key=key,
            measured=measured.get(key, {}),
            figure=_figure(HERE / "figures" / f"{key}.json"),
            price=prices.get(key, {}),
            **read_card(key, path),
        )
        for key, path in files.items()
    ]
    return {card.key: card for card in sorted(unsorted, key=lambda card: card.title.lower())}


def _figure(path: Path) -> list:
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def own_trace(name: str) -> Path:
    """Return the file of the finished trace of a card's own example, whether it exists or not."""
    return PRESETS / "traces" / "methods" / f"{name}.ndjson.gz"


def scaling() -> dict | None:
    """Return the findings of the recipe SCALING, or None if it was not run."""
    file = PRESETS / "models" / "parts" / SCALING / "config.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def methods() -> list[dict]:
    """Return the cards in the form that ``engine list --json`` prints."""
    return [
        {
            "key": card.key,
            "title": card.title,
            "kind": card.kind,
            "family": card.family,
            "exactness": card.exactness,
            "needs_training": card.needs_training,
            "available": card.available,
            "preset": card.example or None,
        }
        for card in [*cards().values(), *outside_cards()[0].values()]
    ]
