"""The decoding methods, one folder per method. A drafter is found by its folder; no list names it."""

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
    """Return every drafter class by key, in the order in which the page offers them; drafters from outside this
    repository come last. Raises UserError if the setting for outside methods does not name a folder."""
    return _found()[0]


def unusable() -> dict[str, str]:
    """Return why outside methods cannot be used: the name of the method's folder -> the reason, one sentence."""
    return _found()[1]


def own_drafters() -> dict[str, type[Drafter]]:
    """Return the drafter classes of this repository by key, without drafters from outside."""
    return {cls.key: cls for _, module in modules("drafter") for cls in classes(module, Drafter)}


@cache
def _found() -> tuple[dict[str, type[Drafter]], dict[str, str]]:
    by_key, wrong = own_drafters(), dict(unusable_rules()) | dict(unusable_kinds())
    for name, folder in outside_folders().items():
        try:
            cls = outside_drafter(folder, by_key)
            by_key[cls.key] = cls
        except UserError as error:
            wrong[name] = str(error)
    return by_key, wrong


def drafter(key: str) -> type[Drafter]:
    """Return the drafter class with this key. Raises UserError if the drafter cannot be used, or if no drafter has this
    key; the message then lists the keys that exist."""
    by_key = drafters()
    if key not in by_key and key in unusable():
        raise UserError(unusable()[key])
    if key not in by_key:
        raise unknown("drafter", key, by_key, LISTED)
    return by_key[key]
