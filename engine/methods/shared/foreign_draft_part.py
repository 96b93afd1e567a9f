"""Opens draft models with another vocabulary than the target's, and maps the target's tokens to it (OmniDraft,
2025)."""

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
    spellings = _SPELLINGS.setdefault(target, WeakKeyDictionary())
    if draft not in spellings:
        rows = target.vocab_size, draft.vocab_size
        names = target.name, draft.name
        spellings[draft] = spelling_of(target.tokenizer, draft.tokenizer, rows, names)
    return ForeignDraft(draft, spellings[draft])


def _load(path: str, target: LanguageModel, dtype, device: str) -> ForeignDraft:
    return _together(target, open_model(path, dtype, device))


def tiny_foreign_draft(target: LanguageModel, opener: Opener) -> ForeignDraft:
    return foreign_draft(target.vocab_size, target.model, opener)


@torch.no_grad()
def foreign_draft(
    vocabulary: int, module: torch.nn.Module, opener: Opener, share: float = 0.75
) -> ForeignDraft:
    """Return a draft model for tests, whose vocabulary has only the given share of the target's tokens. Each of the
    other tokens of the target is spelled as a run of two draft tokens. The weights of the draft model are the target's
    with noise, so that some of its guesses are right."""
    count = round(share * min(vocabulary, module.get_input_embeddings().num_embeddings))
    runs = [(token,) for token in range(count)]
    pairs = ((first, second) for first in range(count) for second in range(count))
    runs += list(itertools.islice(pairs, vocabulary - count))
    config = copy.deepcopy(module.config)
    config.vocab_size = count
    draft = type(module)(config)
    weights = module.state_dict()
    for name, weight in draft.state_dict().items():
        same = weights[name][: len(weight)] if weight.dim() else weights[name]
        weight.copy_(same + 0.1 * torch.randn_like(same) if same.is_floating_point() else same)
    pieces = tuple(chr(ord("a") + token % 26) for token in range(count))
    alone = tuple((token,) for token in range(count))
    spelling = Spelling(tuple(runs), pieces, tuple(runs), alone, count)
    return ForeignDraft(opener(draft), spelling)


KIND = PartKind("foreign_draft", "draft model with another vocabulary", _load, tiny_foreign_draft)
