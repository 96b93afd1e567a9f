"""What was found out about this machine and its libraries once, kept in the user's cache folder."""

import json
import os
from pathlib import Path


class Remembered:
    """A JSON object in a file of its own; DRAFTSCOPE_CACHE names another folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> Path:
        """Raises RuntimeError where the user has no home."""
        folder = os.environ.get("DRAFTSCOPE_CACHE")
        return Path(folder or Path.home() / ".cache" / "draftscope") / self._name

    def read(self) -> dict:
        """Everything in it; nothing where there is no such file or it holds something else."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RuntimeError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, content: dict) -> bool:
        """Whether it could be written."""
        try:
            path = self.path
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            beside.write_text(json.dumps(content, indent=1), "utf-8")
            beside.replace(path)
        except (OSError, RuntimeError):
            return False
        return True
