"""Results about this machine and its libraries, stored by name in the cache folder."""

import json
from pathlib import Path

from engine.cache_folder import cache_folder, write_whole


class Remembered:
    """A JSON object in a file of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> Path:
        """The path of the file. Raises RuntimeError for a user without a home folder."""
        return cache_folder() / self._name

    def read(self) -> dict:
        """The object in the file; {} if the file is missing or holds no JSON object."""
        try:
            content = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RuntimeError):  # RecursionError is a RuntimeError
            return {}
        return content if isinstance(content, dict) else {}

    def write(self, content: dict) -> bool:
        """Write the object to the file. Returns whether that succeeded."""
        try:
            write_whole(self.path, json.dumps(content, indent=1).encode())
        except (OSError, RuntimeError):
            return False
        return True
