"""The names that this server answers to, and the pages that may send something to it.

A name that somebody else points at this machine (DNS rebinding) is refused, so that a foreign page cannot read a server
that only its owner reaches. What a foreign page sends is refused, too.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from app.refusals import Refused
from app.settings import LOOPBACK, address

HOSTS = "DRAFTSCOPE_HOSTS"


class Origins:
    """The allowed names: on a server that only this machine reaches, those of the loopback; elsewhere also plain
    addresses, this machine's own name, and a Space's. DRAFTSCOPE_HOSTS adds others, separated by commas; "*.school.example"
    stands for all names that end so, "*" for every name."""

    def __init__(self, local: bool, environment: Mapping[str, str] = os.environ) -> None:
        self._local = local
        named = [one.strip().lower() for one in environment.get(HOSTS, "").split(",")]
        if "SPACE_ID" in environment:
            named += [environment.get("SPACE_HOST", "").lower(), "*.hf.space"]
        if not local:
            named += [socket.gethostname().lower(), socket.getfqdn().lower()]
        self._named = {one for one in named if one}

    def check(self, headers: Headers, api: bool) -> None:
        """Raises Refused. api: whether the request does something or asks for something, and does not only open the
        page."""
        host = headers.get("host", "")
        if not self._known(_name(host)):
            raise Refused(
                421,
                "host",
                "This server does not answer to that name; its host can allow the name with "
                f"{HOSTS}.",
                True,
            )
        if api and self._foreign(headers, host):
            raise Refused(403, "origin", "Another site sent that; only this page may.", True)

    def _known(self, name: str) -> bool:
        if name in LOOPBACK or "*" in self._named or name in self._named:
            return True
        if any(one.startswith("*.") and name.endswith(one[1:]) for one in self._named):
            return True
        try:
            found = ipaddress.ip_address(name)
        except ValueError:
            return False
        return found.is_loopback or not self._local

    def _foreign(self, headers: Headers, host: str) -> bool:
        """Whether a browser says that another site's page sent this; other programs say nothing."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site in ("same-origin", "none"):
            return False
        if origin is None:
            return site is not None
        sender = urlsplit(origin).netloc.lower()
        return sender not in (host.lower(), headers.get("x-forwarded-host", host).lower())


def _name(host: str) -> str:
    """The host without its port, in lower case, without the brackets of IPv6 and the dot of the root."""
    bare = re.fullmatch(r"\[(.*)\](:\d+)?|([^:]*)(:\d+)?", host.strip().lower())
    return ((bare[1] or bare[3] or "") if bare else "").removesuffix(".")


def origins() -> Origins:
    """The rule for the address that this server is served at."""
    return Origins(address()[0] in LOOPBACK)
