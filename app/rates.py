"""How fast the requests of one address are worked on."""

import time
from collections.abc import Callable

SAVED = 5.0
"""Seconds of an address's rate that it may save up. To open the page costs some eleven requests."""
MOST = 1000


class Rates:
    """Each address has so many requests a second (the generic cell rate algorithm). Its saved ones are worked on at once;
    the ones beyond wait, so that a flood from one address takes a bounded share of the server's time."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._paid: dict[str, float] = {}
        """By address, the time until which what it asked for uses up its rate."""

    def __len__(self) -> int:
        return len(self._paid)

    def wait(self, who: str, cost: float = 1.0) -> float:
        """Seconds for which this request must wait. It counts as this many requests."""
        now = self._now()
        if len(self._paid) > MOST:
            self._paid = {one: until for one, until in self._paid.items() if until > now}
        until = max(self._paid.get(who, now), now) + cost / self._rate
        self._paid[who] = until
        return max(0.0, until - now - SAVED)
