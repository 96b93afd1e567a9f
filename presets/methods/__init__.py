"""Reads the method cards: ``card.toml`` in the folder of a drafter or decoder (``engine/methods/KEY``), or
``presets/methods/KEY.toml`` for rules, loops, studies and other subjects without a folder.

A card says what a method is, what its paper claims, and which run shows it. Beside it lie, written by ``python -m presets``
and never by hand, the finished trace of its own example, its drawn figure and its price (``presets.finished``).
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
from presets.finished import FIGURE, PRICE, beside_card, trace_file, unpacked
from presets.listed import HERE as PRESETS
from presets.listed import Preset
from presets.methods.reading import read_card

HERE = Path(__file__).parent
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
    "". measured: figures of the example's run, or those that a recipe printed of its part; {} until they are measured. price: the costs of a
    lossy method, see ``engine.trace.price.Price``, and the temperature of its texts; {} until they are measured.
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
    return read_cards(card_files(HERE) | own)


@cache
def outside_cards() -> tuple[dict[str, Card], dict[str, str]]:
    """Return (key -> card, key -> sentence) for the usable methods from outside. The sentence says why a method has no
    card. These cards show no finished run, because no run of these methods is recorded here."""
    cards, reasons = {}, {}
    for key, folder in outside_folders().items():
        if key not in drafters() or not drafters()[key].yours:
            continue  # ``engine.methods.unusable`` says why
        try:
            card = Card(key=key, **read_card(key, folder / "card.toml"))
            cards[key] = replace(card, example="", own_example=None, part={}, measured={})
        except UserError as error:
            reasons[key] = f"The method {key} has no card: {error}"
    return cards, reasons


def card_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in folder.glob("*.toml")}


def read_cards(files: Mapping[str, Path]) -> dict[str, Card]:
    """The cards in these files, by key, with what was measured of their methods."""
    read = [_with_results(Card(key=key, **read_card(key, path))) for key, path in files.items()]
    return {card.key: card for card in sorted(read, key=lambda card: card.title.lower())}


def _with_results(card: Card) -> Card:
    figure, price = (beside_card(card.key, name) for name in (FIGURE, PRICE))
    trace = trace_file(card.example) if card.example else None
    return replace(
        card,
        figure=json.loads(figure.read_text("utf-8")) if figure.exists() else [],
        price=json.loads(price.read_text("utf-8")) if price.exists() else {},
        measured=_counts(trace) if trace and trace.exists() else card.measured,
    )


def _counts(trace: Path) -> dict:
    """The figures of a finished trace: counts, which do not depend on the machine or on its load.

    tokens_per_step: the final token included. target_passes: those of the whole run, without prefill. acceptance_rate:
    None where nothing was drafted.
    """
    summary = json.loads(unpacked(trace).rstrip().rpartition("\n")[2])
    rate = summary["acceptance_rate"]
    return {
        "new_tokens": summary["new_tokens"],
        "steps": summary["steps"],
        "target_passes": summary["target_calls"],
        "tokens_per_step": round(summary["mean_accepted"], 2),
        "acceptance_rate": None if rate is None else round(rate, 3),
    }


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
