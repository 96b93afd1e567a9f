"""Models with a vocabulary of a few tokens, for proofs that enumerate every branch."""

import copy

import torch

from engine.methods.deer.part import tiny_diffusion_lm
from engine.methods.eagle.part import tiny_cell as eagle_cell
from engine.methods.falcon.part import tiny_cell as falcon_cell
from engine.methods.hidden_transfer.part import tiny_transfer_maps
from engine.methods.kangaroo.part import tiny_adapter
from engine.methods.learn2pd.part import tiny_filter
from engine.methods.omnidraft.part import foreign_draft
from engine.methods.s2d.part import NestedDraft
from engine.methods.shared.datastore_part import tiny_datastore
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel
from engine.methods.shared.prompt_tokens_part import tiny_prompt_tokens
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.methods.specdec_pp.part import acceptance_head
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import beginners
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
    return Models(
        opened,
        {
            "draft": small,
            "s2d": NestedDraft(small, (1, 2)),
            "omnidraft": foreign_draft(
                vocabulary, module, lambda made: language_model(made, None, "other", lean=False)
            ),
            "diffusion": diffusion.eval().requires_grad_(False),
            "medusa": beginners("medusa", opened),
            "hydra": beginners("hydra", opened, layers=2, prefix=True),
            "clover": beginners("clover", opened),
            "chimera": beginners("chimera", opened),
            "eagle": eagle_cell(opened),
            "falcon": falcon_cell(opened),
            "kangaroo": tiny_adapter(opened),
            "ppd": tiny_prompt_tokens(opened),
            "hidden_transfer": tiny_transfer_maps(opened),
            "specdec_pp": acceptance_head(16),
            "vocabulary": Vocabulary.counted(torch.arange(vocabulary).flip(0)),
            "datastore": tiny_datastore(vocabulary),
            "learn2pd": tiny_filter(3),
            "deer": tiny_diffusion_lm(opened),
        },
    )
