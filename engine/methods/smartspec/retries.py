"""When to try again something that did not pay."""

WAIT, LONGEST_WAIT = 8, 256
"""Steps without a draft after which something is drafted, to see whether it is kept now. The number doubles, up
to LONGEST_WAIT, each time that drafting still does not pay."""


class Retries:
    """When to draft although it does not seem to pay."""

    def __init__(self) -> None:
        self._idle, self._most = 0, WAIT

    @property
    def due(self) -> bool:
        return self._idle >= self._most

    def put_off(self) -> None:
        """Wait as long once more."""
        self._idle = 0

    def passed(self, drafted: bool) -> None:
        """Take note of a step."""
        if self.due and drafted:
            self._most = min(2 * self._most, LONGEST_WAIT)
        elif drafted:
            self._most = WAIT
        self._idle = 0 if drafted else self._idle + 1
