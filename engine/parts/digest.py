"""Whether a part belongs to a target: the part's config holds a digest of the target's weights."""

import hashlib
from functools import lru_cache
from pathlib import Path

from engine.errors import UserError
from engine.parts.files import json_object
from engine.parts.hub import name_of
from engine.parts.stored_file import weights_in

FIELD = "draftscope_target"
"""The entry of a part's config.json that holds the digest."""


@lru_cache(maxsize=16)
def _of_files(files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in files:
        with open(name, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def digest_of(folder: str | Path) -> str | None:
    """Sixteen hexadecimal digits of a SHA-256 over the weight files in a folder; None if there are no such files."""
    files = weights_in(folder)
    if not files:
        return None
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return _of_files(tuple(stats))


def check_belongs(part: str | Path, target: str | Path, noun: str) -> None:
    """Raises UserError if the part's config holds the digest of another target. A part without a digest passes, and so
    does any part of a target that is not a folder."""
    try:
        named = json_object(Path(part) / "config.json").get(FIELD)
    except ValueError:
        return
    digest = digest_of(target) if named is not None and Path(target).is_dir() else None
    if named is not None and digest is not None and named != digest:
        raise UserError(
            f"The {noun} in {name_of(part)} was trained for another target than {name_of(target)}."
        )
