"""Opens nested draft models: models whose first layers are draft models as well (Sorted Speculative Decoding, 2024).

The files are those of a causal language model. The entry ``exits`` in its config lists the numbers of layers after
which the head may be applied.
"""

from dataclasses import dataclass
from pathlib import Path

from engine.errors import UserError
from engine.methods.shared.draft_part import open_draft, tiny_draft
from engine.model.language_model import LanguageModel
from engine.model.layers import Layers, view_of
from engine.parts.files import read_config
from engine.parts.kinds import Opener, PartKind

EXITS = "exits"
MOST_EXITS = 8


@dataclass(frozen=True, eq=False)
class NestedDraft:
    """A nested draft model. exits: the numbers of layers after which the head may be applied, in ascending order; the
    last number is that of all layers."""

    model: LanguageModel
    exits: tuple[int, ...]


def _load(path: str, target: LanguageModel, dtype, device: str) -> NestedDraft:
    name = Path(path).name
    model = open_draft(path, target, dtype, device)
    exits = read_config(Path(path)).get(EXITS)
    whole = isinstance(exits, list) and all(type(layer) is int for layer in exits)
    if not (whole and 2 <= len(exits) <= MOST_EXITS and sorted({*exits}) == exits):
        raise UserError(f"The config of the draft {name} names no exits; it is no nested draft.")
    if exits[0] < 1 or exits[-1] != model.layers:
        raise UserError(f"The exits of the nested draft {name} are not those of its layers.")
    view_of(model.model, Layers(stop=exits[0]))  # raises if its layers cannot be told apart
    return NestedDraft(model, tuple(exits))


def tiny_nested_draft(target: LanguageModel, opener: Opener) -> NestedDraft:
    """Return a draft model like that of ``tiny_draft``, with an additional exit after its first layer."""
    return NestedDraft(tiny_draft(target, opener), (1, target.layers))


KIND = PartKind("nested_draft", "nested draft", _load, tiny_nested_draft)
