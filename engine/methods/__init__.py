"""All methods, a folder each; whatever is in a folder is found there, and listed nowhere."""

from functools import cache

from engine.core.drafter import Drafter
from engine.errors import LISTED, UserError, unknown
from engine.finding import classes, modules, outside_folders
from engine.methods.guarded import outside_drafter
from engine.parts.kinds import unusable_kinds
from engine.rules import unusable_rules

__all__ = ["Drafter", "drafter", "drafters", "own_drafters", "unusable"]


@cache
def drafters() -> dict[str, type[Drafter]]:
    """Every drafter class by key, in the order in which the page offers them; those from outside come last. Raises UserError
    where the setting for these names no folder."""
    return _found()[0]


def unusable() -> dict[str, str]:
    """Name of the folder of a method from outside that cannot be used -> the reason, a sentence."""
    return _found()[1]


def own_drafters() -> dict[str, type[Drafter]]:
    """The drafters in this repository, without those from outside."""
    return {cls.key: cls for _, module in modules("drafter") for cls in classes(module, Drafter)}


@cache
def _found() -> tuple[dict[str, type[Drafter]], dict[str, str]]:
    known, wrong = own_drafters(), dict(unusable_rules()) | dict(unusable_kinds())
    for name, folder in outside_folders().items():
        try:
            made = outside_drafter(folder, known)
            known[made.key] = made
        except UserError as error:
            wrong[name] = str(error)
    return known, wrong


def drafter(key: str) -> type[Drafter]:
    """The drafter class of this key. Raises UserError that names the known keys."""
    known = drafters()
    if key not in known and key in unusable():
        raise UserError(unusable()[key])
    if key not in known:
        raise unknown("drafter", key, known, LISTED)
    return known[key]
