"""A small random part of every kind beside a tiny target."""

from collections.abc import Iterable

import torch

from engine.core.options import resolve
from engine.errors import UserError
from engine.methods import Drafter
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, kind_of
from engine.parts.loading import Models

SEED = 2
"""The seed of each part's weights; with it, every drafter guesses right now and then."""


def tiny_parts(target: LanguageModel, drafters: Iterable[type[Drafter]], opener: Opener) -> Models:
    """The target, and a random part for each role that one of the drafters needs."""
    needs = {role: kind for cls in drafters for role, kind in cls.needs.items()}
    parts = {}
    for role, kind in needs.items():
        torch.manual_seed(SEED)
        parts[role] = tiny_part(kind, target, opener)
    return Models(target, parts)


def tiny_part(kind: str, target: LanguageModel, opener: Opener) -> object:
    made = kind_of(kind).tiny
    if made is None:
        raise UserError(
            f"A proof needs a tiny part of the kind {kind}, and its PartKind has no tiny=."
        )
    return made(target, opener)


def on_trial(cls: type[Drafter], models: Models, **options) -> Drafter:
    """A drafter with the options that show it at work on tiny models."""
    return cls.build(resolve(cls.key, cls.options, {**cls.trial, **options}), models)
