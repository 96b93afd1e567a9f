"""Acceptance rules, one per file; the rule of a single method is in the folder of that method."""

import importlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from engine.core.options import Value, resolve
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.errors import LISTED, UserError, unknown
from engine.finding import classes, modules, outside_folders, outside_module

__all__ = ["Case", "Judgement", "Verdict", "Verifier", "verifier", "verifiers"]


@cache
def verifiers() -> dict[str, type[Verifier]]:
    """Every rule by its key: the exact ones, then the lossy ones."""
    files = [path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"]
    here = [importlib.import_module(f"{__package__}.{name}") for name in files]
    found = [cls for module in here for cls in classes(module, Verifier)]
    found += [cls for _, module in modules("rule") for cls in classes(module, Verifier)]
    found.sort(key=lambda cls: (not cls.exact_kinds, cls.key))
    known = {cls.key: cls for cls in found}
    for folder in outside_folders().values():
        if (folder / "rule.py").is_file():
            with suppress(UserError):  # ``engine.methods.unusable`` says what is wrong
                known = {
                    cls.key: cls for cls in classes(outside_module(folder, "rule"), Verifier)
                } | known
    return known


def verifier(key: str, options: Mapping[str, Value] | None = None) -> Verifier:
    """A rule with these options. Raises UserError for an unknown key, and for options that do not fit."""
    known = verifiers()
    if key not in known:
        raise unknown("verifier", key, known, LISTED)
    return known[key](resolve(f"verifier {key}", known[key].options, options or {}))
