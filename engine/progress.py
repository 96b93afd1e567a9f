"""Reports on the progress of slow tasks."""

from collections.abc import Callable

Tell = Callable[[str, float], None]
"""Takes the task, in a few words, and the share of it that is done, from 0 to 1."""


def silent(task: str, share: float) -> None:
    """Tells nobody."""
