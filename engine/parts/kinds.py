"""The kinds of part that a target can have: each is the ``KIND`` of a module that opens such parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from engine.errors import UserError
from engine.finding import modules, outside_folders, outside_module, shared_parts

if TYPE_CHECKING:
    from torch import nn

    from engine.model.language_model import LanguageModel


Opener = Callable[["nn.Module"], "LanguageModel"]
"""Turns a module into a language model of the engine: plain, lean, or on static buffers."""


@dataclass(frozen=True)
class PartKind:
    """key: what drafters need. noun: for sentences. load(path, target, dtype, device): opens a part and checks that it belongs
    to the target; raises UserError, one sentence. dtype: a torch dtype, or None for the checkpoint's. tiny(target, opener): a small random part beside a
    tiny target, for proofs and tests; None where the method's recipe starts one."""

    key: str
    noun: str
    load: Callable[[str, LanguageModel, object, str], object]
    tiny: Callable[[LanguageModel, Opener], object] | None = None

    @property
    def named(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


@cache
def kinds() -> dict[str, PartKind]:
    """Every kind by its key."""
    found = [module for _, module in modules("part")] + list(shared_parts())
    for folder in outside_folders().values():
        if (folder / "part.py").is_file():
            with suppress(UserError):
                found.append(outside_module(folder, "part"))
    return {module.KIND.key: module.KIND for module in reversed(found)}


def kind_of(key: str) -> PartKind:
    """Raises UserError for an unknown kind."""
    known = kinds()
    if key not in known:
        raise UserError(f"There is no kind of part {key!r}; known are: {', '.join(sorted(known))}.")
    return known[key]
