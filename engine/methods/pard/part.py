"""Opens draft models that draft all tokens in one pass: causal language models whose config names a mask token,
``pard_token``."""

from engine.errors import UserError
from engine.methods.shared import draft_part
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind

MASK = "pard_token"


def mask_of(draft: LanguageModel) -> int:
    """Return the draft model's mask token. Raises UserError if the model names no mask token, or has no embedding for
    it."""
    mask = getattr(draft.model.config, MASK, None)
    if mask is None:
        raise UserError(
            f"{draft.name} drafts one token after another: its config names no mask token ({MASK})."
        )
    if not isinstance(mask, int) or not 0 <= mask < draft.embeddings:
        raise UserError(f"{draft.name} masks with the token {mask!r}, which it does not have.")
    return mask


def _load(path: str, target: LanguageModel, dtype, device: str) -> LanguageModel:
    draft = draft_part.KIND.load(path, target, dtype, device)
    mask_of(draft)
    return draft


def tiny_parallel_draft(target: LanguageModel, opener: Opener) -> LanguageModel:
    draft = draft_part.tiny_draft(target, opener)
    setattr(draft.model.config, MASK, 0)
    return draft


KIND = PartKind("pard", "parallel draft model", _load, tiny_parallel_draft)
