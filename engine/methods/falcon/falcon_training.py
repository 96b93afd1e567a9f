"""Trains a Falcon cell by coupled sequential glancing distillation.

A window goes through the cell twice. In the first pass all pairs of feature and token are the true ones. In the second
pass, most pairs are the features that the first pass predicted, with the tokens that the head gives for them. True
pairs in the second pass are only the first k, which no row predicts, and one run of neighbouring pairs (the *glanced*
run). The more tokens were wrong in the first pass, the longer the glanced run is. So the cell learns to continue from
its own blocks, and how a token of a block depends on the token before.

Three things differ from the paper. The first pass also enters the loss, because every draft begins with true pairs. The
glanced share does not fall with the epochs but stays at the paper's mean. Where in the text the blocks begin differs
from batch to batch, as it does in drafting.

Letters in shapes: S windows, T tokens of a window, P = T - 1 pairs, H hidden size, V the target's vocabulary, k block
size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.methods.falcon.part import FalconCell, FalconConfig
from engine.training.cell_training import (
    FEATURES,
    TOKENS,
    Borrowed,
    Scales,
    eagle_config,
    take_layer,
)
from engine.training.counted_acceptance import run_lengths

GLANCED = 0.2
"""The length of the run of true pairs in the second pass, as a share of the number of wrong tokens. In the paper this
share falls from 0.4 to 0; this is its mean."""
SOFT = 0.9
"""The weight of the target's distribution in the loss on tokens. The rest of the weight is on the target's most likely
token."""


@torch.no_grad()
def new_cell(target, text_config, block_size: int) -> FalconCell:
    """Return a cell whose attention layer starts as the target's last layer. target: the transformers module."""
    cell = FalconCell(FalconConfig(block_size, eagle_config(text_config, "eagle")))
    take_layer(cell.layer, target, Scales.of(target))
    return cell


def through(cell: FalconCell, states: Tensor, embedded: Tensor, offset: int) -> Tensor:
    """Run the cell over pairs [S, P, H] of features and embedded tokens; return states [S, P, H], of which row i
    predicts feature i + k. offset: by how many rows the first block is shorter than the other blocks."""
    rows, _ = cell.listen(states, embedded, None)
    block = (torch.arange(rows.shape[1], device=rows.device) + offset) // cell.block_size
    relaxed = block[:, None] >= block[None, :]

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=relaxed, enable_gqa=True
        )

    places = torch.arange(rows.shape[1], device=rows.device)
    return cell(rows, cell.turn(places), attend)


def block_loss(
    cell: FalconCell,
    features: Tensor,
    tokens: Tensor,
    logits: Tensor,
    counted: Tensor,
    embedding: Borrowed,
    head: Borrowed,
    noise: Tensor | None = None,
    index: int = 0,
) -> Tensor:
    """Return the loss of one batch, the mean of both passes.

    features: [S, T, H]. tokens: int64 [S, T]. logits: [S, T, V] of the target; row t is for token t + 1. counted: bool
    [S, T], which tokens enter the loss. noise: added to the features. index: the number of the batch, which decides
    where blocks begin and where runs are glanced.
    """
    size, offset = cell.block_size, index % cell.block_size
    taught = (features, logits, counted, head)
    noisy = (features if noise is None else features + noise)[:, :-1]
    embedded = embedding(tokens[:, 1:])
    first = through(cell, noisy, embedded, offset)
    own, own_tokens = first.detach()[:, :-size], head(first.detach()[:, :-size]).argmax(-1)
    true = glances(own_tokens != logits[:, size:-1].argmax(-1), index)
    mixed = torch.where(true[..., None], noisy[:, size:], own)
    words = torch.where(true, tokens[:, 1 + size :], own_tokens)
    states = torch.cat([noisy[:, :size], mixed], 1)
    fed = torch.cat([embedded[:, :size], embedding(words)], 1)
    second = through(cell, states, fed, offset)
    return (_missed(first, size, *taught) + _missed(second, size, *taught)) / 2


def glances(wrong: Tensor, index: int, share: float = GLANCED) -> Tensor:
    """Choose the glanced run of each window at random. Returns bool [S, P - k], for the pairs after the first k: True
    for the pairs of the glanced run, which are true in the second pass, too. The run has ``share`` times as many pairs
    as the window has wrong tokens. wrong: bool [S, P - k], whether the first pass gave a wrong token for the pair.
    index: the number of the batch, which decides where the runs begin."""
    length = (share * wrong.sum(-1)).round().long()
    drawn = torch.rand(len(wrong), generator=torch.Generator().manual_seed(index)).to(length.device)
    begin = (drawn * (wrong.shape[1] - length + 1)).long()
    places = torch.arange(wrong.shape[1], device=length.device)
    return (places >= begin[:, None]) & (places < (begin + length)[:, None])


def _missed(
    states: Tensor, size: int, features: Tensor, logits: Tensor, counted: Tensor, head: Borrowed
) -> Tensor:
    """Return the loss of one pass of the cell. Row i of ``states`` predicts feature i + k. The first term is the smooth
    L1 distance of the predicted features to the target's features. The second term distils (``SOFT``): it compares the
    distribution of token i + k + 1 that the head computes from the predicted feature with the target's. states: the
    pass's output, [S, P, H]. size: k."""
    keep = counted[:, 1 + size :]  # row i predicts feature i + k and token i + k + 1
    guessed, true = states[:, :-size][keep], features[:, size:-1][keep]
    taught = logits[:, size:-1][keep].float()
    log_q = head(guessed).float().log_softmax(-1)
    soft = F.kl_div(log_q, taught.log_softmax(-1), reduction="batchmean", log_target=True)
    hard = F.nll_loss(log_q, taught.argmax(-1))
    near = F.smooth_l1_loss(guessed.float(), true.float())
    return FEATURES * near + TOKENS * (SOFT * soft + (1 - SOFT) * hard)


@torch.no_grad()
def accepted(
    cell: FalconCell, features: Tensor, tokens: Tensor, embedding: Borrowed, head: Borrowed
) -> Tensor:
    """Return, for each token as the root, how many tokens of one greedy block after it match the text, int64 [S, T]; 0
    for the first k tokens, which have no whole block before them. tokens: greedy text of the target."""
    size, length = cell.block_size, tokens.shape[1]
    lengths = torch.zeros_like(tokens)
    embedded = embedding(tokens[:, 1:])
    for offset in range(size):  # so that a block ends at every place
        states = through(cell, features[:, :-1], embedded, offset)
        best = head(states).argmax(-1)
        for end in range(
            size - 1, length - 1
        ):  # the row of a block's last pair; the root is token end + 1
            if (end + 1 + offset) % size == 0:
                guessed = best[:, end - size + 1 : end + 1]
                truth = F.pad(tokens, (0, size), value=-1)[:, end + 2 : end + 2 + size]
                lengths[:, end + 1] = run_lengths(guessed == truth)
    return lengths
