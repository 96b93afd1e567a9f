"""Draft models with a vocabulary of their own, and how the target's tokens are written in it (OmniDraft, 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from engine.methods.omnidraft.spelling import Spelling, spelling_of
from engine.model.language_model import LanguageModel
from engine.parts.kinds import PartKind
from engine.parts.models import open_model


@dataclass(frozen=True, eq=False)
class ForeignDraft:
    model: LanguageModel
    spelling: Spelling


_SPELLINGS: WeakKeyDictionary[LanguageModel, WeakKeyDictionary[LanguageModel, Spelling]] = (
    WeakKeyDictionary()
)


def _together(target: LanguageModel, draft: LanguageModel) -> ForeignDraft:
    known = _SPELLINGS.setdefault(target, WeakKeyDictionary())
    if draft not in known:
        rows = target.vocab_size, draft.vocab_size
        names = target.name, draft.name
        known[draft] = spelling_of(target.tokenizer, draft.tokenizer, rows, names)
    return ForeignDraft(draft, known[draft])


def _load(path: str, target: LanguageModel, dtype, device: str) -> ForeignDraft:
    return _together(target, open_model(path, dtype, device))


KIND = PartKind("foreign_draft", "draft model with another vocabulary", _load)
