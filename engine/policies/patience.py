"""When to try again something that did not pay."""

PATIENCE, MOST_PATIENCE = 8, 64
"""Steps without a draft after which something is drafted, to see whether it is kept now. The number doubles, up
to MOST_PATIENCE, each time that drafting still does not pay."""


class Patience:
    """When to draft although it does not seem to pay."""

    def __init__(self) -> None:
        self._idle, self._most = 0, PATIENCE

    @property
    def over(self) -> bool:
        return self._idle >= self._most

    def put_off(self) -> None:
        """Wait as long once more."""
        self._idle = 0

    def passed(self, drafted: bool) -> None:
        """Take note of a step."""
        if self.over and drafted:
            self._most = min(2 * self._most, MOST_PATIENCE)
        elif drafted:
            self._most = PATIENCE
        self._idle = 0 if drafted else self._idle + 1
