"""All methods, a folder each; whatever is in a folder is found there, and listed nowhere."""

from functools import cache

from engine.core.drafter import Drafter
from engine.errors import LISTED, unknown
from engine.finding import classes, modules

__all__ = ["Drafter", "drafter", "drafters"]


@cache
def drafters() -> dict[str, type[Drafter]]:
    """Every drafter class by key, in the order in which the page offers them."""
    return {cls.key: cls for _, module in modules("drafter") for cls in classes(module, Drafter)}


def drafter(key: str) -> type[Drafter]:
    """The drafter class of this key. Raises UserError that names the known keys."""
    known = drafters()
    if key not in known:
        raise unknown("drafter", key, known, LISTED)
    return known[key]
