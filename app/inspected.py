"""Describes a visitor's own checkpoint in the words of ``python -m engine inspect``, if the host allows the model."""

from pathlib import Path

from engine.bridges.inspecting import inspect_drafter
from engine.errors import UserError
from engine.parts.hub import name_of
from engine.parts.inspection import refuse_links
from engine.parts.size_limits import Allowed, allowed_engine, allowed_wish


def inspected(target: object, draft: object, allowed: Allowed) -> list[str]:
    """Return sentences about the draft beside the target, or about the target if no draft is named; [] on failure.

    Only the checkpoints' descriptions are read, and no folder outside the allowed ones.
    """
    try:
        engine = allowed_engine(target, allowed)
        if engine and draft:
            return inspect_drafter(_checked(draft, allowed)).lines()
        beside = _checked(target, allowed)
        if not draft:
            return inspect_drafter(beside).lines()
        return inspect_drafter(_checked(draft, allowed), beside).lines()
    except (UserError, OSError):
        return []


def _checked(wish: object, allowed: Allowed) -> str:
    name, root = allowed_wish(wish, allowed)
    if root is not None and Path(name).is_dir():
        refuse_links(Path(name), root, name_of(name))
    return name
