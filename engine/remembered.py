"""What was found out about this machine and its libraries once, by name, kept in the cache folder."""

import json
from pathlib import Path

from engine.cache_folder import cache_folder, write_whole


class Remembered:
    """A JSON object in a file of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> Path:
        """Raises RuntimeError for a user without a home."""
        return cache_folder() / self._name

    def read(self) -> dict:
        """Everything in it; nothing where there is no such file or it holds something else."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RuntimeError):  # RecursionError is a RuntimeError
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, content: dict) -> bool:
        """Whether it could be written."""
        try:
            write_whole(self.path, json.dumps(content, indent=1).encode())
        except (OSError, RuntimeError):
            return False
        return True
