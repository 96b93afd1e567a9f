"""Trains the block-diffusion drafter: many random blocks of each window share one pass of the frozen target.

Row i of a block learns from the target's law for the token at its position, given the true text before that position.
The row itself sees only the text up to the block's root. So the most that it can learn is the mean of these laws over
all texts that may stand between the root and its position: the law given only the text up to the root. Earlier rows
have larger weights, exp(-(i - 1) / gamma) as in DFlash, because a drafted token is of use only if all drafted tokens
before it are right.

Letters in shapes: S windows, T tokens of each, A blocks of each, B tokens of a block, n feature layers, H hidden size,
K tokens for which there are logits.
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
    """The configuration of a diffusion drafter with the target's hidden size. vocabulary: the number of the target's
    logits; 0: the number that its config says. known: the number of tokens in a trimmed head; 0: the head has all
    tokens."""
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
    """The numbers, from 0, of an early, a middle and a late layer of a target with ``layers`` layers. The last layer
    is never one of them, because transformers returns its state only after the final norm."""
    return 1, layers // 2, layers - 2


@torch.no_grad()
def start_from(drafter: DFlashModel, target) -> None:
    """Initialise the drafter in place. Its layers and its final norm become copies of the target's last layers and
    final norm, so that the drafter already knows something of the language. The weights of its projection of features
    become small random numbers, plus an identity matrix in the columns of the last feature layer. So an untrained
    drafter's projection returns nearly the state of that layer. The drafter must have the target's hidden size."""
    layers, hidden = target.model.layers[-len(drafter.layers) :], drafter.config.hidden_size
    for mine, theirs in zip(drafter.layers, layers, strict=True):
        mine.load_state_dict(theirs.state_dict(), strict=False)  # only ours has q_norm and k_norm
    drafter.norm.load_state_dict(target.model.norm.state_dict())
    drafter.fc.weight.normal_(std=0.01)
    drafter.fc.weight[:, -hidden:] += torch.eye(hidden)


def mask_token(teacher) -> int:
    """The mask token of the teacher's tokenizer. If the tokenizer has none: the smallest token id that does not occur
    in the teacher's text."""
    own = teacher.tokenizer.mask_token_id
    if own is not None:
        return own
    counts = np.bincount(selftext.load(teacher.text_file).tokens)
    absent = np.flatnonzero(counts == 0)
    return int(absent[0]) if len(absent) else len(counts)


def features_of(hidden_states: tuple[Tensor, ...], layer_ids: tuple[int, ...]) -> Tensor:
    """The features of n layers side by side, [S, T, n*H], from the hidden_states of transformers. layer_ids: the
    numbers of the layers, from 0."""
    return torch.cat([hidden_states[i + 1] for i in layer_ids], dim=-1)


def block_embeddings(
    embedding: torch.nn.Embedding, roots: Tensor, block_size: int, mask_token_id: int
) -> Tensor:
    """The embeddings of blocks, [S, A, B, H]: each block is a root and B - 1 mask tokens. roots: the tokens of the
    roots, [S, A]."""
    tokens = torch.full((*roots.shape, block_size), mask_token_id, device=roots.device)
    tokens[..., 0] = roots
    return embedding(tokens)


def random_anchors(rows: int, length: int, blocks: int, block_size: int, seed: int) -> Tensor:
    """Random positions for the roots of blocks, int64 [rows, blocks], such that each whole block lies in its window.
    rows: the number of windows. length: tokens of a window."""
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
    """The weighted mean divergence between the drafter's laws and the target's, over the blocks whose roots are at the
    positions ``anchors``.

    features, logits: the target's, [S, T, n*H] and [S, T, K]. tokens: int64 [S, T]. counted: bool [S, T], True for
    tokens whose prediction enters the loss. anchors: the positions of the roots, int64 [S, A]. head: a function from
    hidden states to logits over the same K tokens.
    """
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
