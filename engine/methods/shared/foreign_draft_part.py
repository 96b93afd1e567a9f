"""Draft models with a vocabulary of their own, and how the target's tokens are written in it (OmniDraft, 2025)."""

import copy
import itertools
from weakref import WeakKeyDictionary

import torch

from engine.methods.shared.spelling import ForeignDraft, Spelling, spelling_of
from engine.model.language_model import LanguageModel
from engine.parts.kinds import Opener, PartKind
from engine.parts.models import open_model

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


def tiny_foreign_draft(target: LanguageModel, opener: Opener) -> ForeignDraft:
    return foreign_draft(target.vocab_size, target.model, opener)


@torch.no_grad()
def foreign_draft(
    vocabulary: int, module: torch.nn.Module, opener: Opener, share: float = 0.75
) -> ForeignDraft:
    """A draft with this share of the target's tokens; each other token is a run of two of these. Its weights are the
    target's with noise, so that it is right now and then."""
    known = round(share * min(vocabulary, module.get_input_embeddings().num_embeddings))
    runs = [(token,) for token in range(known)]
    pairs = ((one, other) for one in range(known) for other in range(known))
    runs += list(itertools.islice(pairs, vocabulary - known))
    config = copy.deepcopy(module.config)
    config.vocab_size = known
    draft = type(module)(config)
    weights = module.state_dict()
    for name, weight in draft.state_dict().items():
        same = weights[name][: len(weight)] if weight.dim() else weights[name]
        weight.copy_(same + 0.1 * torch.randn_like(same) if same.is_floating_point() else same)
    pieces = tuple(chr(ord("a") + token % 26) for token in range(known))
    alone = tuple((token,) for token in range(known))
    spelling = Spelling(tuple(runs), pieces, tuple(runs), alone, known)
    return ForeignDraft(opener(draft), spelling)


KIND = PartKind("foreign_draft", "draft model with another vocabulary", _load, tiny_foreign_draft)
