"""All ways of drafting, by key."""

from engine.drafters.base import Drafter, Kept
from engine.drafters.chain import ChainDrafter
from engine.drafters.ddtree import DDTreeDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.drafters.dimple import DimpleDrafter
from engine.drafters.dyspec import DySpecDrafter
from engine.drafters.none import NoDrafter
from engine.drafters.prompt_lookup import PromptLookupDrafter
from engine.drafters.swift import SwiftDrafter
from engine.errors import UserError

__all__ = ["Drafter", "Kept", "drafter", "drafters"]

_ALL = (
    NoDrafter,
    ChainDrafter,
    DySpecDrafter,
    PromptLookupDrafter,
    DFlashDrafter,
    DDTreeDrafter,
    DimpleDrafter,
    SwiftDrafter,
)


def drafters() -> dict[str, type[Drafter]]:
    """Every drafter class by key, in the order in which the page offers them."""
    return {cls.key: cls for cls in _ALL}


def drafter(key: str) -> type[Drafter]:
    """The drafter class of this key. Raises UserError that names the known ones."""
    known = drafters()
    if key not in known:
        raise UserError(f"There is no drafter {key!r}; known are: {', '.join(known)}.")
    return known[key]
