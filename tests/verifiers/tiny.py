"""Models with a vocabulary of a few tokens, for proofs that enumerate every branch."""

import copy

import torch

from engine.methods.hydra.part import HydraHeads
from engine.methods.omnidraft.part import foreign_draft
from engine.methods.s2d.part import NestedDraft
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_target import tiny_module

OTHERS = {
    "diffusion": "denoiser",
    "medusa": "medusa_heads",
    "clover": "clover_heads",
    "chimera": "chimera_heads",
    "eagle": "eagle",
    "falcon": "falcon",
    "kangaroo": "adapter",
    "ppd": "prompt_tokens",
    "hidden_transfer": "transfer_maps",
    "specdec_pp": "acceptance_head",
    "datastore": "datastore",
    "learn2pd": "unmasking_filter",
    "deer": "diffusion_lm",
}
"""Role -> kind of the parts that are as every kind makes them."""


def tiny_models(
    vocabulary: int, seed: int = 2, end_token: int | None = None, layers: int = 2
) -> Models:
    """A target of two layers, or of ``layers``, a draft that is the target plus noise, and a part of every other kind.
    The token list of the part ``vocabulary`` ends with token 0.

    The weights are large, so that distributions differ from context to context. With seed 2 and a
    vocabulary of 4 a refusal mostly leaves two or three tokens; with only one left, many faults would be hidden.
    """
    module = tiny_module(vocabulary, seed, end_token, layers)
    draft = copy.deepcopy(module)
    with torch.no_grad():
        for weight in draft.parameters():
            weight += 0.2 * torch.randn_like(weight)
        for model in (module, draft):
            model.lm_head.weight *= 0.5
    opened = language_model(module, None, "tiny target", lean=False)
    small = language_model(draft, None, "tiny draft", lean=False)
    return Models(
        opened,
        {
            "draft": small,
            "s2d": NestedDraft(small, (1, 2)),
            "omnidraft": foreign_draft(
                vocabulary, module, lambda made: language_model(made, None, "other", lean=False)
            ),
            "hydra": HydraHeads.tiny(opened, layers=2, prefix=True),
            "vocabulary": Vocabulary.counted(torch.arange(vocabulary).flip(0)),
            **{role: kind_of(kind).tiny(opened, None) for role, kind in OTHERS.items()},
        },
    )
