"""Language models, each opened once per process."""

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.parts.opening import load_language_model
from engine.parts.shelf import Shelf

open_model: Shelf[LanguageModel] = Shelf(load_language_model, 8)
"""A function of (path, dtype, device) that returns a causal language model, opened once per process."""


def check_same_vocabulary(target: LanguageModel, draft: LanguageModel) -> None:
    """Raises UserError unless token ids mean the same to both models. Logits padded to different sizes do not
    matter."""
    if target.tokenizer.get_vocab() != draft.tokenizer.get_vocab():
        raise UserError(
            f"The draft {draft.name} has another vocabulary than the target {target.name}; "
            "this drafter needs one tokenizer for both."
        )
