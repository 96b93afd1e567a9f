"""The folder that keeps data about this machine between runs: the cost of steps, compiled models."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder's path: DRAFTSCOPE_CACHE if this environment variable is set, or else a folder in the user's home.
    Raises RuntimeError for a user without a home folder."""
    named = os.environ.get("DRAFTSCOPE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "draftscope"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside ``path`` and rename it, so that nobody reads an incomplete file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)
