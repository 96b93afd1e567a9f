"""Who is here: the address of each browser session, and whether the session still holds a connection open.

Shares are counted by address, because anybody may make up any number of sessions. A session is *here* while its
heartbeat, or an answer to it, is being read; it *reads* while an answer is, for a heartbeat takes no answers.
"""

import ipaddress
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from engine.errors import UserError

PROXIES = "DRAFTSCOPE_PROXIES"
PRIVATE = "127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"
"""Where the proxies of a Space are; nobody else reaches it from there."""
MOST = 4000
Worth = Callable[[str], bool | tuple]
HEART, ANSWER = "heartbeat", "answer"
"""The kinds of connection that a session holds open."""


def client(host: str | None) -> str:
    """The address that shares are counted by: of IPv6 the first 64 bits, because a visitor has all of the rest."""
    try:
        address = ipaddress.ip_address((host or "").partition("%")[0])
    except ValueError:
        return host or ""
    if address.version == 6 and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False).network_address)
    return str(address)


def proxies(environment: Mapping[str, str] = os.environ) -> str:
    """The proxies whose word about a visitor's address is taken: DRAFTSCOPE_PROXIES, addresses and networks separated
    by commas. If it is not set: a Space's own, elsewhere none. Raises UserError for anything else."""
    given = environment.get(PROXIES)
    if given is None:
        return PRIVATE if "SPACE_ID" in environment else ""
    named = [one.strip() for one in given.split(",") if one.strip()]
    for one in named:
        try:
            ipaddress.ip_network(one, strict=False)
        except ValueError:
            raise UserError(
                f"{PROXIES} lists addresses and networks; {one!r} is neither."
            ) from None
    return ",".join(named)


def first_to_go(kept: Iterable[str], stays: str, here: Callable[[str], bool], worth: Worth) -> str:
    """Which of these sessions loses what is kept for it: one that is not here before one that is, then the one with
    least worth, then the first. stays: the session that the room is made for."""
    return min((one for one in kept if one != stays), key=lambda one: (here(one), worth(one)))


@dataclass
class _Visit:
    address: str = ""
    came: bool = False
    """Whether a page of this session had a heartbeat."""
    open: Counter[str] = field(default_factory=Counter)
    """How many connections of each kind are open."""
    ended: int = 0
    """How many of the open heartbeats are ending."""

    @property
    def here(self) -> bool:
        return any(self.open.values())


class Visitors:
    """The sessions seen last; those with open streams are never forgotten."""

    def __init__(self) -> None:
        self._visits: OrderedDict[str, _Visit] = OrderedDict()
        self._lock = threading.Lock()
        self.arrived: Callable[[str], None] = lambda session: None
        """Called with each session that begins to read its answers."""

    def seen(self, session: str, address: str) -> None:
        """A request of this session came from this address."""
        with self._lock:
            self._of(session).address = address

    def heartbeat(self, session: str, address: str) -> AbstractContextManager[None]:
        """The session is here until the context ends."""
        return self._connected(session, address, HEART)

    @contextmanager
    def reading(self, session: str, address: str) -> Iterator[None]:
        """The session is here, and reads its answers, until the context ends."""
        with self._connected(session, address, ANSWER):
            self.arrived(session)
            yield

    @contextmanager
    def _connected(self, session: str, address: str, kind: str) -> Iterator[None]:
        with self._lock:
            visit = self._of(session)
            visit.address = address
            visit.open[kind] += 1
            visit.came |= kind == HEART
        try:
            yield
        finally:
            with self._lock:
                visit.open[kind] -= 1
                visit.ended -= kind == HEART and visit.ended > 0

    def silent(self, session: str) -> bool:
        """One of the session's heartbeats has ended, though its connection is still counted for a moment. Returns whether
        no other beats."""
        with self._lock:
            visit = self._visits.get(session)
            if visit is None or not visit.open[HEART]:
                return True
            visit.ended += 1
            return visit.ended >= visit.open[HEART]

    def here(self, session: str) -> bool:
        visit = self._visits.get(session)
        return visit is not None and visit.here

    def came(self, session: str) -> bool:
        """Whether it is here, or has been here as a page is, which may come back after its connection broke."""
        visit = self._visits.get(session)
        return visit is not None and (visit.came or visit.here)

    def reads(self, session: str) -> bool:
        visit = self._visits.get(session)
        return visit is not None and visit.open[ANSWER] > 0

    def address(self, session: str) -> str:
        """Empty for a session that no request named."""
        visit = self._visits.get(session)
        return visit.address if visit else ""

    def _of(self, session: str) -> _Visit:
        visit = self._visits.setdefault(session, _Visit())
        self._visits.move_to_end(session)
        while len(self._visits) > MOST:
            gone = next((one for one, v in self._visits.items() if not v.here), None)
            if gone in (None, session):
                break
            del self._visits[gone]
        return visit


def anyone(session: str) -> bool:
    """Everybody counts as here."""
    return True


VISITORS = Visitors()
