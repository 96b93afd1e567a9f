"""Findings about this machine and its libraries, by name, kept in the cache folder."""

import json
from pathlib import Path

from engine.cache_folder import cache_folder, write_whole


class Remembered:
    """A JSON object in a file of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> Path:
        """Raises RuntimeError for a user without a home folder."""
        return cache_folder() / self._name

    def read(self) -> dict:
        """The object in the file; {} if the file is missing or holds no JSON object."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RuntimeError):  # RecursionError is a RuntimeError
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, content: dict) -> bool:
        """Returns whether it could be written."""
        try:
            write_whole(self.path, json.dumps(content, indent=1).encode())
        except (OSError, RuntimeError):
            return False
        return True
