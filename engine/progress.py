"""Reports on the progress of slow tasks."""

from collections.abc import Callable

Tell = Callable[[str, float], None]
"""A function that takes a task, in a few words, and the share of it that is done, from 0 to 1."""


def silent(task: str, share: float) -> None:
    """A ``Tell`` that does nothing."""
