"""Reads and checks the front matter of README.md, the lines that make a repository a Space."""

from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import RepoCard
from huggingface_hub.constants import SPACES_SDK_TYPES
from packaging.requirements import Requirement
from yaml import YAMLError

COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
PYTHONS = {"3.10", "3.11", "3.12", "3.13"}
NEEDED = (
    "title",
    "emoji",
    "colorFrom",
    "colorTo",
    "sdk",
    "sdk_version",
    "python_version",
    "app_file",
)


def read(readme: Path) -> dict:
    """Return the front matter as a dict. Raises ValueError, one sentence, if there is none, or it cannot be read."""
    try:
        card = RepoCard(readme.read_text(encoding="utf-8"), ignore_metadata_errors=False).data
    except (OSError, ValueError, YAMLError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{readme.name} has no front matter that can be read: {why}") from None
    fields = card.to_dict()
    if not fields:
        raise ValueError(f"{readme.name} has no front matter.")
    return fields


def problems(card: dict, root: Path) -> Iterator[str]:
    """Yield one sentence for each field that Spaces would refuse, or that contradicts requirements.txt."""
    missing = [name for name in NEEDED if not card.get(name)]
    if missing:
        yield f"The front matter lacks {', '.join(missing)}."
        return
    if card["sdk"] not in SPACES_SDK_TYPES:
        yield f"There is no SDK {card['sdk']!r}; known are: {', '.join(SPACES_SDK_TYPES)}."
    for name in ("colorFrom", "colorTo"):
        if card[name] not in COLOURS:
            yield f"{name} is {card[name]!r}; known are: {', '.join(sorted(COLOURS))}."
    if len(card.get("short_description", "")) > 60:
        yield "short_description is longer than 60 characters."
    if ".".join(str(card["python_version"]).split(".")[:2]) not in PYTHONS:
        yield f"python_version is {card['python_version']}; known are: {', '.join(sorted(PYTHONS))}."
    if not (root / card["app_file"]).is_file():
        yield f"app_file names {card['app_file']}, which is not there."
    gradio = gradio_requirement(root)
    if gradio is None:
        yield "requirements.txt does not name gradio."
    elif not gradio.specifier.contains(str(card["sdk_version"])):
        yield f"sdk_version {card['sdk_version']} is not what requirements.txt asks for ({gradio})."


def gradio_requirement(root: Path) -> Requirement | None:
    """Return the requirement for gradio in requirements.txt, or None."""
    try:
        lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    named = [Requirement(line) for line in map(str.strip, lines) if line and line[0] not in "#-"]
    return next((requirement for requirement in named if requirement.name == "gradio"), None)
