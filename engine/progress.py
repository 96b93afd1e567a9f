"""How far something is that takes a while."""

from collections.abc import Callable

Tell = Callable[[str, float], None]
"""Takes what is being done, in a few words, and the share of it that is done, from 0 to 1."""


def silent(task: str, share: float) -> None:
    """Tells nobody."""
