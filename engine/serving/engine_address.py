"""The address of a model behind a serving engine: vllm://HOST:PORT/NAME or sglang://HOST:PORT/NAME."""

from typing import NamedTuple
from urllib.parse import urlsplit

from engine.errors import UserError

ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}
"""Scheme of an address -> the engine's name for people."""


class Address(NamedTuple):
    """A parsed address. engine: a key of ``ENGINES``. name: the name under which the engine serves the model."""

    engine: str
    host: str
    port: int
    name: str

    @property
    def place(self) -> str:
        """The engine's host and port, for people."""
        return f"{self.host}:{self.port}"


def is_served(target: str) -> bool:
    """Whether ``target`` names a model behind an engine."""
    scheme, mark, _ = target.lower().partition("://")
    return bool(mark) and scheme in ENGINES


def read(target: str) -> Address:
    """The parsed address. Raises UserError for anything other than an address."""
    try:
        parts = urlsplit(target)
        host, port, name = parts.hostname, parts.port, parts.path.strip("/")
    except ValueError:
        host = port = name = None
    if not (host and port and name) or "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError(
            "A model behind an engine is named vllm://HOST:PORT/NAME or sglang://HOST:PORT/NAME, without a key: keys stand in "
            "the environment."
        )
    return Address(parts.scheme, host, port, name)
