"""Acceptance rules, one per file. A rule that serves a single method is in that method's folder."""

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import get_args

from engine.bounded.time_limit import within
from engine.core.options import Option, Value, resolve
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.core.tree import Kind
from engine.errors import LISTED, UserError, unknown
from engine.finding import classes, modules, outside_folders, outside_module

__all__ = ["Case", "Judgement", "Verdict", "Verifier", "rule_class", "verifier", "verifiers"]


def verifiers() -> dict[str, type[Verifier]]:
    """Every rule by its key: the exact rules, then the lossy rules, then the rules of methods from outside this
    repository."""
    return _found()[0]


def unusable_rules() -> dict[str, str]:
    """For each method from outside this repository whose rule cannot be used: the name of the method's folder -> the
    reason, a sentence."""
    return _found()[1]


def own_rules() -> dict[str, type[Verifier]]:
    """The rules in this repository by their keys, without the rules of methods from elsewhere."""
    files = [path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"]
    here = [importlib.import_module(f"{__package__}.{name}") for name in files]
    rules = [cls for module in here for cls in classes(module, Verifier)]
    rules += [cls for _, module in modules("rule") for cls in classes(module, Verifier)]
    rules.sort(key=lambda cls: (not cls.exact_kinds, cls.key))
    return {cls.key: cls for cls in rules}


@cache
def _found() -> tuple[dict[str, type[Verifier]], dict[str, str]]:
    rules, wrong = own_rules(), {}
    for name, folder in outside_folders().items():
        if (folder / "rule.py").is_file():
            try:
                rules |= {cls.key: cls for cls in outside_rules(folder, rules)}
            except UserError as error:
                wrong[name] = str(error)
    return rules, wrong


def outside_rules(folder: Path, known: Mapping[str, type[Verifier]]) -> list[type[Verifier]]:
    """The rules in rule.py of a method from outside this repository, each with a time limit. known: the rules whose
    keys are taken.

    Raises UserError, one sentence, if a rule in the file cannot be used.
    """
    rules = classes(outside_module(folder, "rule"), Verifier)
    for cls in rules:
        declared = isinstance(cls.key, str) and cls.key.isidentifier()
        if not declared or cls.__abstractmethods__ or not getattr(cls, "summary", ""):
            raise UserError(f"A rule of the method {folder.name} needs a key, a summary and judge.")
        if cls.key in known:
            raise UserError(
                f"The method {folder.name} has a rule {cls.key!r}, which exists already."
            )
        within(
            folder.name, f"what its rule {cls.key} declares", lambda cls=cls: _check_declared(cls)
        )
    return [_limited(cls) for cls in rules]


def _check_declared(cls: type[Verifier]) -> None:
    """Check the class attributes that the page and the lists read. Raises UserError."""
    if not isinstance(cls.options, tuple) or not all(
        isinstance(option, Option) for option in cls.options
    ):
        raise UserError(f"The options of the rule {cls.key} must be a tuple of Option.")
    kinds = cls.exact_kinds
    if not isinstance(kinds, frozenset) or not kinds <= frozenset(get_args(Kind)):
        raise UserError(
            f"exact_kinds of the rule {cls.key} must be a frozenset of kinds of draw: {', '.join(get_args(Kind))}."
        )
    sentences = cls.sentences if isinstance(cls.sentences, Mapping) else {"": None}
    texts = [cls.title or "", cls.summary, *sentences, *sentences.values()]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"The title, summary and sentences of the rule {cls.key} must be texts.")
    resolve(f"verifier {cls.key}", cls.options, dict(cls.trial))


def _limited(cls: type[Verifier]) -> type[Verifier]:
    class Limited(cls):
        def judge(self, case: Case) -> Verdict:
            return within(cls.key, "judge", lambda: super(Limited, self).judge(case))

    Limited.__name__, Limited.__qualname__ = cls.__name__, cls.__qualname__
    Limited.__module__, Limited.__doc__ = cls.__module__, cls.__doc__
    return Limited


def rule_class(key: str) -> type[Verifier]:
    """The rule class with this key. Raises UserError, which names the existing keys, for an unknown key."""
    rules = verifiers()
    if key not in rules:
        raise unknown("verifier", key, rules, LISTED)
    return rules[key]


def verifier(key: str, options: Mapping[str, Value] | None = None) -> Verifier:
    """A rule with these options. Raises UserError for an unknown key, and for options that do not fit."""
    rule = rule_class(key)
    return rule(resolve(f"verifier {key}", rule.options, options or {}))
