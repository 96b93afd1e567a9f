"""Models with a vocabulary of a few tokens, for proofs that enumerate every branch."""

import copy
from functools import cache

import torch

from engine.methods import own_drafters
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.memo import remembering
from engine.proof.tiny_parts import tiny_module, tiny_parts
from tests.verifiers.passes import passing_once


def tiny_models(
    vocabulary: int, end_token: int | None = None, layers: int = 2, once: bool = False
) -> Models:
    """A target of two layers, or of ``layers``, a draft that is the target plus noise, and a part of every other kind.
    The token list of the part ``vocabulary`` ends with token 0. once: whether the models make each pass once
    (``tests.verifiers.passes``), as enumerations want it.

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

    def opened(made, name="tiny part"):
        model = language_model(made, None, name, lean=False)
        return passing_once(model) if once else model

    target, small = opened(module, "tiny target"), opened(draft, "tiny draft")
    several = tiny_parts(target, own_drafters().values(), opened)
    own = {"draft": small, "vocabulary": Vocabulary.counted(torch.arange(vocabulary).flip(0))}
    return Models(target, {**several.parts, **own})


def shared_models(
    vocabulary: int, end_token: int | None = None, layers: int = 2, once: bool = False
) -> Models:
    """Return the models of ``tiny_models``, made once in a process, for tests that leave them as they are."""
    return _made(vocabulary, end_token, layers, once)


_made = cache(tiny_models)


@cache
def remembered_models(vocabulary: int, end_token: int | None = None) -> Models:
    """Return models of ``shared_models`` that compute each text once in a process (``engine.proof.memo``)."""
    return remembering(shared_models(vocabulary, end_token, once=True))
