"""Limits how many requests of one address are worked on in a second."""

import time
from collections.abc import Callable

SAVED = 5.0
"""Seconds of its rate that an address may save up. Opening the page costs about eleven requests."""
MOST = 1000


class Rates:
    """Each address has ``rate`` requests a second (the generic cell rate algorithm). Requests that it has saved up are
    worked on at once; further requests wait, so that a flood from one address takes a bounded share of the server's
    time."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._paid: dict[str, float] = {}
        """Address -> time until which its requests so far use up its rate."""

    def __len__(self) -> int:
        return len(self._paid)

    def wait(self, who: str, cost: float = 1.0) -> float:
        """Count a request of this address, and return the seconds for which it must wait. cost: in requests."""
        now = self._now()
        if len(self._paid) > MOST:
            self._paid = {address: until for address, until in self._paid.items() if until > now}
        until = max(self._paid.get(who, now), now) + cost / self._rate
        self._paid[who] = until
        return max(0.0, until - now - SAVED)
