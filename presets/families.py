"""The families of models. A family is a target with the parts that were made for it."""

from collections.abc import Iterable
from pathlib import Path

from engine.errors import unknown
from engine.parts.loading import ModelPaths
from presets.fetched import missing_target, offered, place_of, sources
from presets.listed import HERE

TITLES = {
    "": "Small, instant",
    "smollm2": "A real chat model",
    "hybrid": "Small, on a recurrent state",
    "experts": "Small, experts that neighbours share",
    "experts-topk": "Small, experts chosen token by token",
    "image": "Pictures",
    "captions": "Words about a picture",
}
"""Each family in a few words, in the order in which they are offered."""
BORROWING = ("experts", "experts-topk")
"""Families that use the draft model of the embedded family."""


def families() -> list[str]:
    """Return the names of the families; "" is the embedded family that writes text. Some targets are fetched
    (``presets.fetched``); the host may leave their families out."""
    folders = (HERE / "models" / "families").glob("*/")
    names = ["", *sorted(folder.name for folder in folders if offered(folder.name))]
    order = list(TITLES)
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def title(name: str) -> str:
    """Return this family's title, a few words."""
    return TITLES.get(name, name.capitalize())


def family(name: str = "") -> ModelPaths:
    """Return the paths of a family's models. "" is the embedded family that writes text. The target may not be fetched
    yet. Raises UserError, which lists the known names."""
    models = HERE / "models"
    if name in sources():
        place_of(name)  # raises if the host has switched these families off
    if name not in families():
        raise unknown("family of models", name, [known for known in families() if known])
    if not name:
        return ModelPaths(str(models / "target"), _parts(models))
    folder = models / "families" / name
    target = folder / "target" if (folder / "target").is_dir() else folder
    if name in BORROWING:
        return ModelPaths(str(folder), {"draft": str(models / "draft")}, name)
    return ModelPaths(str(place_of(name) if name in sources() else target), _parts(folder), name)


def _parts(folder: Path) -> dict[str, str]:
    """Return role -> path of the parts in this folder."""
    roles = {role: folder / role for role in ("draft", "diffusion") if (folder / role).is_dir()}
    roles |= {part.name: part for part in sorted((folder / "parts").glob("*"))}
    return {role: str(part) for role, part in roles.items()}


def models() -> list[dict]:
    """Return the families for the command line's list: name, title, the roles of the parts, and whether the target is
    on this machine."""
    return [
        {
            "name": name,
            "title": title(name),
            "parts": sorted(family(name).parts),
            "here": missing_target(name) is None,
        }
        for name in families()
    ]


def converses(name: str) -> bool:
    """Return whether this family's target answers a prompt as a user's turn, and does not continue it as a text."""
    return name in sources() and sources()[name].chat


def asked(name: str, prompt: str, turns: Iterable[dict[str, str]] = ()) -> dict:
    """Return the fields of a RunRequest that hold a prompt for this family. turns: the conversation before the
    prompt."""
    if not converses(name):
        return {"prompt": prompt}
    return {"prompt": "", "messages": [*turns, {"role": "user", "content": prompt}]}
