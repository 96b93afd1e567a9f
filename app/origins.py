"""Checks the host name in a request, and the site that sent it.

A name that somebody else points at this machine (DNS rebinding) is refused, so that a foreign page cannot read a server
that only its owner reaches. A request from a foreign page is refused, too.
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
    """The host names that this server answers to.

    On a server that only this machine reaches, they are the names of the loopback. Elsewhere they are also IP
    addresses, this machine's own name, and on a Space the Space's names. DRAFTSCOPE_HOSTS adds names, separated by
    commas: "*.school.example" stands for all names with that ending, "*" for every name.
    """

    def __init__(self, local: bool, environment: Mapping[str, str] = os.environ) -> None:
        self._local = local
        named = [name.strip().lower() for name in environment.get(HOSTS, "").split(",")]
        if "SPACE_ID" in environment:
            named += [environment.get("SPACE_HOST", "").lower(), "*.hf.space"]
        if not local:
            named += [socket.gethostname().lower(), socket.getfqdn().lower()]
        self._named = {name for name in named if name}

    def check(self, headers: Headers, api: bool) -> None:
        """Raise Refused for a name that is not allowed, and for a call from another site. api: whether the request is a
        call, and not only the opening of a page."""
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
        if any(pattern.startswith("*.") and name.endswith(pattern[1:]) for pattern in self._named):
            return True
        try:
            address_of_host = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address_of_host.is_loopback or not self._local

    def _foreign(self, headers: Headers, host: str) -> bool:
        """Return whether a browser says that another site's page sent this. Other programs send no such headers."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site in ("same-origin", "none"):
            return False
        if origin is None:
            return site is not None
        sender = urlsplit(origin).netloc.lower()
        return sender not in (host.lower(), headers.get("x-forwarded-host", host).lower())


def _name(host: str) -> str:
    """Return the host in lower case, without its port, the brackets of IPv6, and a dot at its end."""
    bare = re.fullmatch(r"\[(.*)\](:\d+)?|([^:]*)(:\d+)?", host.strip().lower())
    return ((bare[1] or bare[3] or "") if bare else "").removesuffix(".")


def origins() -> Origins:
    """Return the allowed names for the address at which this server is served."""
    return Origins(address()[0] in LOOPBACK)
