"""The kinds of part that a target can have. Each is the ``KIND`` of a module that opens such parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UserError
from engine.finding import modules, outside_folders, outside_module, shared_parts

if TYPE_CHECKING:
    from torch import nn

    from engine.model.language_model import LanguageModel


Opener = Callable[["nn.Module"], "LanguageModel"]
"""A function that turns a module into one of the engine's language models: plain, with compiled passes, or on static
buffers."""


@dataclass(frozen=True)
class PartKind:
    """A kind of part, and how to open it.
    key: the name by which drafters request the kind. noun: what sentences call a part of this kind.
    load(path, target, dtype, device): opens a part and checks that it belongs to the target; raises UserError, one
    sentence. dtype is a torch dtype, or None for the checkpoint's.
    tiny(target, opener): returns a small random part for a tiny target, for proofs and tests. Only a kind from outside
    this repository may have None here."""

    key: str
    noun: str
    load: Callable[[str, LanguageModel, object, str], object]
    tiny: Callable[[LanguageModel, Opener], object] | None = None

    @property
    def named(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


def kinds() -> dict[str, PartKind]:
    """Every kind of part by its key."""
    return _found()[0]


def unusable_kinds() -> dict[str, str]:
    """For each method from outside this repository whose part.py cannot be used: the name of the method's folder -> the
    reason, a sentence."""
    return _found()[1]


@cache
def _found() -> tuple[dict[str, PartKind], dict[str, str]]:
    ours = [module for _, module in modules("part")] + list(shared_parts())
    by_key, wrong = {module.KIND.key: module.KIND for module in ours}, {}
    for name, folder in outside_folders().items():
        if (folder / "part.py").is_file():
            try:
                add_kind(folder, by_key)
            except UserError as error:
                wrong[name] = str(error)
    return by_key, wrong


def add_kind(folder: Path, known: dict[str, PartKind] | None = None) -> None:
    """Add the kind in part.py of a method from outside this repository to ``known``, or to ``kinds()`` if ``known`` is
    None. Raises UserError, one sentence, if the file has no kind, or one whose key exists already."""
    known = kinds() if known is None else known
    kind = getattr(outside_module(folder, "part"), "KIND", None)
    if not isinstance(kind, PartKind):
        raise UserError(f"part.py of the method {folder.name} must have a KIND, a PartKind.")
    if known.setdefault(kind.key, kind) is not kind:
        raise UserError(
            f"The method {folder.name} has a part of the kind {kind.key!r}, which exists already."
        )


def kind_of(key: str) -> PartKind:
    """The kind with this key. Raises UserError for an unknown key."""
    by_key = kinds()
    if key not in by_key:
        raise UserError(
            f"There is no kind of part {key!r}; known are: {', '.join(sorted(by_key))}."
        )
    return by_key[key]
