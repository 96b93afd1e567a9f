"""Models with a vocabulary of a few tokens, for proofs that enumerate every branch."""

import copy

import torch

from engine.methods import own_drafters
from engine.methods.shared.datastore_part import tiny_datastore
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from engine.proof.tiny_target import tiny_module


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
    diffusion = DFlashModel(
        DFlashConfig(
            vocab_size=vocabulary,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            block_size=4,
            target_layer_ids=(0, 1),
            mask_token_id=0,
            num_target_layers=2,
        )
    )
    opened = language_model(module, None, "tiny target", lean=False)
    small = language_model(draft, None, "tiny draft", lean=False)
    found = tiny_parts(
        opened,
        own_drafters().values(),
        lambda made: language_model(made, None, "tiny part", lean=False),
    )
    own = {
        "draft": small,
        "diffusion": diffusion.eval().requires_grad_(False),
        "vocabulary": Vocabulary.counted(torch.arange(vocabulary).flip(0)),
        "datastore": tiny_datastore(vocabulary),
    }
    return Models(opened, {**found.parts, **own})
