"""The address of a model behind a serving engine: vllm://HOST:PORT/NAME."""

from typing import NamedTuple
from urllib.parse import urlsplit

from engine.errors import UserError

SCHEME = "vllm://"


class Address(NamedTuple):
    """name: of the model, as the engine serves it."""

    host: str
    port: int
    name: str

    @property
    def place(self) -> str:
        """Where the engine is, for people."""
        return f"{self.host}:{self.port}"


def is_served(target: str) -> bool:
    """Whether this names a model behind an engine."""
    return target.lower().startswith(SCHEME)


def read(target: str) -> Address:
    """Raises UserError for anything other than an address."""
    try:
        parts = urlsplit(target)
        host, port, name = parts.hostname, parts.port, parts.path.strip("/")
    except ValueError:
        host = port = name = None
    if not (host and port and name) or "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError(
            "A model behind an engine is named vllm://HOST:PORT/NAME, without a key: keys stand in the environment."
        )
    return Address(host, port, name)
