"""Checks that a visitor's model may be opened: it is on the host's list, safe, and small enough for the free memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from engine.bounded.bounded_tokenizer import distrust
from engine.errors import UserError
from engine.parts.hub import download, is_hub_name
from engine.parts.inspection import Checkpoint, inspect
from engine.parts.promise import FLOAT
from engine.progress import Tell, silent
from engine.serving.engine_address import is_served, read

SPARED = 0.5
"""The share of free memory that one model may take. The rest is needed for a while when the model is loaded."""


@dataclass(frozen=True)
class Allowed:
    """The models that a host allows.

    patterns: Hub names like owner/* or *, folders below which models may lie, and models behind engines,
    vllm://HOST:PORT/NAME or …/*. most_bytes: the limit for one model, however much memory is free; with None, only the
    free memory limits it.
    """

    patterns: Sequence[str] = ()
    most_bytes: int | None = None

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def room(self) -> int:
        """The bytes that a model may take now."""
        free = int(free_bytes() * SPARED)
        return free if self.most_bytes is None else min(free, self.most_bytes)


def free_bytes() -> int:
    """The bytes of memory that are free without swapping, within the container's limit. Files that the container caches
    only while nothing else needs the memory count as free."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    try:
        most = int(Path("/sys/fs/cgroup/memory.max").read_text("ascii"))
        used = int(Path("/sys/fs/cgroup/memory.current").read_text("ascii"))
        figures = Path("/sys/fs/cgroup/memory.stat").read_text("ascii").splitlines()
        used -= sum(int(line.split()[1]) for line in figures if line.startswith("inactive_file "))
    except (OSError, ValueError):
        return free
    return max(0, min(free, most - used))


def check_room(checkpoint: Checkpoint, itemsize: int) -> None:
    """Raises UserError if this machine has too little free memory for a model; call it before loading. Compiled passes
    on a CPU need some memory besides the weights. itemsize: bytes of a weight once it is loaded."""
    needed, free = int(checkpoint.nbytes * itemsize / FLOAT / SPARED), free_bytes()
    if needed > free:
        raise UserError(
            f"{checkpoint.name} needs {needed / 1e9:,.2f} GB of memory; {free / 1e9:,.2f} GB are free."
        )


def admit(wish: str, allowed: Allowed, tell: Tell = silent) -> Checkpoint:
    """Inspect the model that a visitor names by Hub name or folder; it is downloaded if need be.

    Raises UserError, one sentence, if it may not be opened. Nothing outside the allowed folders is read.
    """
    wish, root = allowed_wish(wish, allowed)
    if root is not None:
        checkpoint = inspect(wish, root)
    else:
        folder = download(wish, allowed.room(), tell)
        checkpoint = inspect(
            folder, folder.parent.parent, wish
        )  # the root is the model's cache folder: links lead to its blobs
    room = allowed.room()
    if checkpoint.nbytes > room:
        raise UserError(
            f"{checkpoint.name} needs {checkpoint.nbytes / 1e9:,.2f} GB of memory; "
            f"{room / 1e9:,.2f} GB are free for it now."
        )
    distrust(checkpoint.folder)
    return checkpoint


def allowed_wish(wish: object, allowed: Allowed) -> tuple[str, Path | None]:
    """The cleaned name of the visitor's model, and the allowed folder that holds it, or None if the name is a Hub name.
    Raises UserError, one sentence, if the host does not allow the model."""
    wish = _named(wish)
    if is_served(wish):
        raise UserError("This page asks no engine at an address that a visitor names.")
    root = _root_of(wish, allowed)
    if root is None and not (
        is_hub_name(wish) and any(fnmatchcase(wish, pattern) for pattern in _names(allowed))
    ):
        raise UserError("This page does not open that model; its host lists those that it does.")
    return wish, root


def allowed_engine(wish: object, allowed: Allowed) -> str | None:
    """The address of the model if it is behind an engine; None for other models. Raises UserError for an address that
    the host does not list."""
    if not is_served(wish := _named(wish)):
        return None
    engine = read(wish)
    for listed in map(read, filter(is_served, allowed.patterns)):
        if engine[:3] == listed[:3] and fnmatchcase(engine.name, listed.name):
            return wish
    raise UserError("This page asks no engine at that address; its host lists those that it does.")


def _named(wish: object) -> str:
    if not isinstance(wish, str) or not wish.strip() or len(wish) > 300 or not wish.isprintable():
        raise UserError("Name a model: OWNER/NAME on the Hub, or a folder.")
    return wish.strip()


def _names(allowed: Allowed) -> list[str]:
    return [pattern for pattern in allowed.patterns if not os.path.isabs(pattern)]


def _root_of(wish: str, allowed: Allowed) -> Path | None:
    """The allowed folder that contains this folder once links are followed; None if there is none."""
    if not os.path.isabs(wish) or "\0" in wish:
        return None
    real = Path(os.path.realpath(wish))
    for pattern in allowed.patterns:
        if os.path.isabs(pattern) and real.is_relative_to(os.path.realpath(pattern)):
            return Path(os.path.realpath(pattern))
    return None
