"""Draft models: causal language models that share the target's tokenizer."""

from engine.model.language_model import LanguageModel
from engine.parts.kinds import PartKind
from engine.parts.models import check_same_vocabulary, open_model


def _load(path: str, target: LanguageModel, dtype, device: str) -> LanguageModel:
    draft = open_model(path, dtype, device)
    check_same_vocabulary(target, draft)
    return draft


KIND = PartKind("draft", "draft model", _load)
