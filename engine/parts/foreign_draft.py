"""Draft models with a vocabulary of their own, and how the target's tokens are written in it (OmniDraft, 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from engine.parts.draft import open_model
from engine.parts.kinds import PartKind
from engine.parts.spelling import Spelling, spelling_of
from engine.target.language_model import LanguageModel


@dataclass(frozen=True, eq=False)
class ForeignDraft:
    model: LanguageModel
    spelling: Spelling


@lru_cache(maxsize=4)
def _together(target: LanguageModel, draft: LanguageModel) -> ForeignDraft:
    names = (target.name, draft.name)
    return ForeignDraft(
        draft, spelling_of(target.tokenizer, draft.tokenizer, target.vocab_size, names)
    )


def _load(path: str, target: LanguageModel, dtype, device: str) -> ForeignDraft:
    return _together(target, open_model(path, dtype, device))


KIND = PartKind("draft model with another vocabulary", _load)
