"""Records the address of each browser session, and whether the session still holds a connection open.

Shares are counted by address, because a client may make up any number of sessions. A session is *here* while it holds
a heartbeat or a stream of answers open. It *reads* while it holds a stream of answers open: a heartbeat brings none.
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
"""The networks in which the proxies of a Space are; no visitor has such an address."""
MOST = 4000
Worth = Callable[[str], bool | tuple]
HEART, ANSWER = "heartbeat", "answer"
"""The kinds of connection that a session holds open."""


def client(host: str | None) -> str:
    """Return the address by which shares are counted. For IPv6 it is the network of the first 64 bits, because one
    visitor has all addresses in it."""
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
    """Return the proxies that are trusted to name a visitor's address: DRAFTSCOPE_PROXIES, addresses and networks
    separated by commas. If it is not set, they are a Space's own, and none elsewhere. Raises UserError for other
    text."""
    setting = environment.get(PROXIES)
    if setting is None:
        return PRIVATE if "SPACE_ID" in environment else ""
    named = [network.strip() for network in setting.split(",") if network.strip()]
    for network in named:
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError:
            raise UserError(
                f"{PROXIES} lists addresses and networks; {network!r} is neither."
            ) from None
    return ",".join(named)


def first_to_go(kept: Iterable[str], stays: str, here: Callable[[str], bool], worth: Worth) -> str:
    """Return the session that must give up its place: first one that is not here, then the one with the least worth,
    then the first. stays: the session that needs a place, which is never returned."""
    return min(
        (session for session in kept if session != stays),
        key=lambda session: (here(session), worth(session)),
    )


@dataclass
class _Visit:
    address: str = ""
    came: bool = False
    """Whether this session had a heartbeat, as a page has."""
    open: Counter[str] = field(default_factory=Counter)
    """How many connections of each kind are open."""
    ended: int = 0
    """How many of the open heartbeats are ending."""

    @property
    def here(self) -> bool:
        return any(self.open.values())


class Visitors:
    """The sessions that came last. A session with an open connection is never forgotten."""

    def __init__(self) -> None:
        self._visits: OrderedDict[str, _Visit] = OrderedDict()
        self._lock = threading.Lock()
        self.arrived: Callable[[str], None] = lambda session: None
        """Called with a session when it begins to read its answers."""

    def seen(self, session: str, address: str) -> None:
        """Note that a request of this session came from this address."""
        with self._lock:
            self._of(session).address = address

    def heartbeat(self, session: str, address: str) -> AbstractContextManager[None]:
        """Count the session as here until the context ends."""
        return self._connected(session, address, HEART)

    @contextmanager
    def reading(self, session: str, address: str) -> Iterator[None]:
        """Count the session as here, and as reading its answers, until the context ends."""
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
        """Note that one of the session's heartbeats has ended, though its connection counts for a moment longer.
        Returns whether the session has no other heartbeat."""
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
        """Return whether the session is here, or had a heartbeat before: then it may come back after a broken
        connection."""
        visit = self._visits.get(session)
        return visit is not None and (visit.came or visit.here)

    def reads(self, session: str) -> bool:
        visit = self._visits.get(session)
        return visit is not None and visit.open[ANSWER] > 0

    def address(self, session: str) -> str:
        """Return the session's address; "" for an unknown session."""
        visit = self._visits.get(session)
        return visit.address if visit else ""

    def _of(self, session: str) -> _Visit:
        visit = self._visits.setdefault(session, _Visit())
        self._visits.move_to_end(session)
        while len(self._visits) > MOST:
            gone = next((candidate for candidate, v in self._visits.items() if not v.here), None)
            if gone in (None, session):
                break
            del self._visits[gone]
        return visit


def anyone(session: str) -> bool:
    """Return True: every session counts as here."""
    return True


VISITORS = Visitors()
