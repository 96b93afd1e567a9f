"""Training of the block-diffusion drafter: many random blocks of each window share one pass of the frozen target.

Row i of a block learns the target's distribution at its place, given the true text up to there; averaged over texts
this is the distribution given the prefix alone, which is all the row can know. Early rows weigh more, because a row
counts only where all before it were right: exp(-(i - 1) / gamma), as in DFlash.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel
from engine.training import selftext
from engine.training.distill import divergence_loss
from engine.training.new_models import attention_shape


def diffusion_config(
    target_config,
    mask_token_id: int,
    layers: int = 2,
    block_size: int = 8,
    feature_layers: tuple[int, ...] | None = None,
    vocabulary: int = 0,
    known: int = 0,
) -> DFlashConfig:
    """The configuration of a diffusion model as wide as the target. vocabulary: columns of the target's logits, 0 for
    the number in its config. known: tokens of a cut head, 0 for a whole head."""
    c, shape = target_config, attention_shape(target_config)
    feature_layers = feature_layers or spread_layers(c.num_hidden_layers)
    return DFlashConfig(
        vocab_size=vocabulary or c.vocab_size,
        hidden_size=c.hidden_size,
        intermediate_size=c.intermediate_size,
        num_hidden_layers=layers,
        block_size=block_size,
        target_layer_ids=feature_layers,
        mask_token_id=mask_token_id,
        num_target_layers=c.num_hidden_layers,
        max_position_embeddings=c.max_position_embeddings,
        draft_vocab_size=known,
        **shape,
    )


def spread_layers(layers: int) -> tuple[int, int, int]:
    """An early, a middle and a late layer, counted from zero. The last layer is left out, because transformers returns
    it after the final norm."""
    return 1, layers // 2, layers - 2


@torch.no_grad()
def start_from(drafter: DFlashModel, target) -> None:
    """A start that knows the language: the drafter takes the target's last layers and final norm, and its features
    begin as those of the last feature layer alone. Only for a drafter as wide as its target."""
    layers, hidden = target.model.layers[-len(drafter.layers) :], drafter.config.hidden_size
    for mine, theirs in zip(drafter.layers, layers, strict=True):
        mine.load_state_dict(theirs.state_dict(), strict=False)  # only ours has q_norm and k_norm
    drafter.norm.load_state_dict(target.model.norm.state_dict())
    drafter.fc.weight.normal_(std=0.01)
    drafter.fc.weight[:, -hidden:] += torch.eye(hidden)


def mask_token(teacher) -> int:
    """The mask of a teacher's tokenizer; else the first token that is not in its text."""
    own = teacher.tokenizer.mask_token_id
    if own is not None:
        return own
    counts = np.bincount(selftext.load(teacher.text_file).tokens)
    absent = np.flatnonzero(counts == 0)
    return int(absent[0]) if len(absent) else len(counts)


def features_of(hidden_states: tuple[Tensor, ...], layer_ids: tuple[int, ...]) -> Tensor:
    """transformers' hidden_states -> [S, T, n*H]"""
    return torch.cat([hidden_states[i + 1] for i in layer_ids], dim=-1)


def block_embeddings(
    embedding: torch.nn.Embedding, roots: Tensor, block_size: int, mask_token_id: int
) -> Tensor:
    """Root tokens [S, A] -> [S, A, B, H]: the root, then masks."""
    tokens = torch.full((*roots.shape, block_size), mask_token_id, device=roots.device)
    tokens[..., 0] = roots
    return embedding(tokens)


def random_anchors(rows: int, length: int, blocks: int, block_size: int, seed: int) -> Tensor:
    """int64 [rows, blocks]: roots whose whole block lies in the window."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(rows, length - block_size + 1, generator=generator).argsort(dim=1)[:, :blocks]


def diffusion_loss(
    drafter: DFlashModel,
    embedding: torch.nn.Embedding,
    head: Callable[[Tensor], Tensor],
    features: Tensor,
    logits: Tensor,
    tokens: Tensor,
    counted: Tensor,
    anchors: Tensor,
    gamma: float = 4.0,
) -> Tensor:
    """features [S, T, n*H] and logits [S, T, K] of the target, tokens int64 [S, T], counted bool [S, T], anchors int64
    [S, A]. head: hidden states -> logits over the same K tokens."""
    config = drafter.config
    with torch.no_grad():
        roots = tokens.gather(1, anchors)
        blocks = block_embeddings(embedding, roots, config.block_size, config.mask_token_id)
        steps = torch.arange(1, config.block_size, device=tokens.device)
        places = anchors[..., None] + steps  # [S, A, B-1]: where the drafted tokens stand
        rows = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(places)
        keep = counted[rows, places].flatten()
        teacher = logits[rows, places - 1].flatten(0, 2)[keep]
        weights = torch.exp(-(steps - 1) / gamma).expand_as(places).flatten()[keep]
    hidden = drafter(features, blocks, anchors)[:, :, 1:].flatten(0, 2)[keep]
    return divergence_loss(head(hidden), teacher, weights)
