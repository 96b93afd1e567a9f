"""Models with a vocabulary of a few tokens, for proofs that enumerate every branch."""

import copy

import torch

from engine.methods import own_drafters
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_module, tiny_parts


def tiny_models(vocabulary: int, end_token: int | None = None, layers: int = 2) -> Models:
    """A target of two layers, or of ``layers``, a draft that is the target plus noise, and a part of every other kind.
    The token list of the part ``vocabulary`` ends with token 0.

    The weights are large, so that distributions differ from context to context. With this seed and
    a vocabulary of 4 a refusal mostly leaves two or three tokens; with only one left, many faults would be hidden.
    """
    module = tiny_module(vocabulary, 2, end_token, layers)
    draft = copy.deepcopy(module)
    with torch.no_grad():
        for weight in draft.parameters():
            weight += 0.2 * torch.randn_like(weight)
        for model in (module, draft):
            model.lm_head.weight *= 0.5
    opened = language_model(module, None, "tiny target", lean=False)
    small = language_model(draft, None, "tiny draft", lean=False)
    several = tiny_parts(
        opened,
        own_drafters().values(),
        lambda made: language_model(made, None, "tiny part", lean=False),
    )
    own = {"draft": small, "vocabulary": Vocabulary.counted(torch.arange(vocabulary).flip(0))}
    return Models(opened, {**several.parts, **own})
