"""Trains an EAGLE cell: how it starts, the loss of EAGLE-1 and 2, EAGLE-3's training-time test, and the accepted
length.

Row i of a window has feature i and token i + 1 as inputs, and the cell's output predicts feature i + 1. In a draft,
the cell's own outputs replace the features after the first step. The training imitates this by unrolling a window over
several steps. In step k (from 0), row i has two inputs: its own output of step k - 1, and token i + 1 + k. It attends
to the rows of step 0 up to row i, and to its own row in all steps since, as in a draft that begins after row i.

Letters in shapes: S windows, T tokens of each, H hidden size of the cell, Ht hidden size of the target, n * Ht
features from n layers of the target, V the target's vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.methods.shared.eagle_cell import EagleCell, EagleLayer, Pieces
from engine.methods.shared.eagle_config import FUSED, EagleConfig, Layout
from engine.training.counted_acceptance import run_lengths
from engine.training.new_models import attention_shape

Borrowed = Callable[[Tensor], Tensor]
NOISE = 0.1
"""The largest noise that is added to features in training (EAGLE). It prepares the cell for its own features in a
draft, which are inexact."""
FEATURES, TOKENS = 1.0, 0.1
"""The weights of the two terms of EAGLE-1's loss: FEATURES for the distance of features, TOKENS for the cross-entropy
of tokens. Without weights, the second term would be ten times as large."""
TRACE = 0.3
"""In the inputs of a new cell, how large the token's embedding is, relative to the feature."""
DECAY = 0.8
"""In the training-time test (EAGLE-3), each step has this multiple of the weight of the step before it."""


def eagle_config(target, layout: Layout, draft_vocabulary: int = 0) -> EagleConfig:
    """The configuration of a cell with the target's hidden size. target: the target's text config in transformers.
    draft_vocabulary: the number of tokens in the cell's own head; 0: the whole vocabulary of the target."""
    c, shape = target, attention_shape(target)
    return EagleConfig(
        layout=layout,
        vocab_size=c.vocab_size,
        hidden_size=c.hidden_size,
        target_hidden_size=c.hidden_size,
        intermediate_size=getattr(c, "intermediate_size", None) or 4 * c.hidden_size,
        draft_vocab_size=draft_vocabulary or c.vocab_size,
        max_position_embeddings=c.max_position_embeddings,
        feature_layers=spread_layers(c.num_hidden_layers) if layout in FUSED else (),
        norm_output=layout == "mtp",
        rope={"rope_theta": shape.pop("rope_theta")},
        **shape,
    )


def spread_layers(layers: int) -> tuple[int, int, int]:
    """The indices in ``hidden_states`` of EAGLE-3's low, middle and high features, for a target of ``layers`` layers,
    even if it has few. The state after the final norm is never one of them."""
    low, middle, high = 2, layers // 2, layers - 3
    return min(low, layers - 1), max(1, middle), min(max(high, middle), layers - 1)


@torch.no_grad()
def new_cell(
    config: EagleConfig,
    target,
    vocabulary: Tensor | None = None,
    readout: bool = False,
    borrows: bool = False,
) -> EagleCell:
    """A cell before its training. It starts with the target's last layer, final norm and head, so that it already
    knows something of the language. The projection of its inputs first returns the feature, plus a little of the
    token's embedding.

    The feature sampler and the readout add nothing at first. Where the target lacks a weight, or has it in another
    shape, the cell's weight stays random. target: the transformers module. vocabulary: the target's tokens that the
    cell can draft, int64 [v] in ascending order; None: all. readout: whether the cell has a readout. borrows: whether
    a cell with a smaller vocabulary uses frozen rows of the target's head instead of a head of its own.
    """
    own = config.fused and vocabulary is not None
    pieces = Pieces(
        norm=config.layout != "eagle",
        own_head=config.fused and not (own and borrows),
        own_vocabulary=own,
        readout=readout,
    )
    cell = EagleCell(config, pieces)
    for silent in (cell.readout, getattr(cell.feature_sampler, "down_proj", None)):
        if silent is not None:
            silent.weight.zero_()
    scales = Scales.of(target)
    hidden = config.hidden_size
    bare, mtp = config.layout == "eagle", config.layout == "mtp"
    trace = TRACE * scales.feature / scales.embedding if bare else TRACE
    cell.fc.weight.normal_(std=trace / hidden**0.5)
    if config.target_hidden_size == hidden:
        cell.fc.weight[:, -hidden:] = torch.eye(hidden)
    if mtp:  # its pairs are normed, and its layer reads what the target's layers read
        cell.fc.weight.mul_(scales.between)
    take_layer(cell.layers[0], target, scales)
    if cell.norm is not None:
        norm = getattr(target.base_model, "norm", None)
        if norm is not None and norm.weight.shape == cell.norm.weight.shape:
            cell.norm.weight.copy_(norm.weight)
        if cell.lm_head is not None:
            head = target.get_output_embeddings().weight
            cell.lm_head.weight.copy_(head if vocabulary is None else head[vocabulary])
    if own:
        cell.d2t.copy_(vocabulary - torch.arange(len(vocabulary)))
        cell.t2d[vocabulary] = True
    return cell.beside(target)


@dataclass(frozen=True)
class Scales:
    """The root mean square of a target's embeddings, of its hidden states before the last layer (``between``), and of
    its hidden states after the final norm (``feature``)."""

    embedding: float
    between: float
    feature: float

    @classmethod
    def of(cls, target) -> Scales:
        vocabulary = target.get_input_embeddings().num_embeddings
        tokens = torch.randint(vocabulary, (4, 32), generator=torch.Generator().manual_seed(0))
        ids = tokens.to(target.device)
        states = target(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states
        sizes = (states[0], states[-2], states[-1])
        return cls(*(max(float(size.float().square().mean().sqrt()), 1e-6) for size in sizes))


def take_layer(layer: EagleLayer, target, scales: Scales) -> None:
    """Copy the target's last layer into a layer of the cell. If the cell's layer has no input norm (as in EAGLE-1),
    the norm's weights are multiplied into the projections that follow, and the layer's outputs are scaled to the size
    of a feature."""
    layers = getattr(target.base_model, "layers", None)
    theirs = dict(layers[-1].named_parameters()) if layers is not None else {}
    front = theirs.get("input_layernorm.weight")
    for name, mine in layer.named_parameters():
        weight = theirs.get(name.replace("hidden_norm", "input_layernorm"))
        if weight is None or (layer.fused and name == "input_layernorm.weight"):
            continue
        into = name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))
        out = name.endswith(("o_proj.weight", "down_proj.weight"))
        if weight.shape == mine.shape:
            bare = layer.bare
            if bare and into and front is not None:
                weight = weight * front / scales.feature
            mine.copy_(weight * (scales.feature / scales.between) if bare and out else weight)
        elif into and weight.shape == (mine.shape[0], mine.shape[1] // 2):
            mine.normal_(std=TRACE / weight.shape[1] ** 0.5)
            mine[:, weight.shape[1] :] = weight


def most_frequent(tokens: Tensor, size: int, vocabulary: int) -> Tensor:
    """The ``size`` most frequent tokens, int64 [size] in ascending order, for the vocabulary of a cell. tokens: of any
    shape. vocabulary: the size of the target's vocabulary."""
    counts = torch.bincount(tokens.flatten(), minlength=vocabulary)
    return counts.argsort(descending=True, stable=True)[:size].sort().values


def unrolled(
    cell: EagleCell,
    features: Tensor,
    tokens: Tensor,
    embedding: Borrowed,
    steps: int,
    drafted: Tensor | None = None,
) -> Iterator[Tensor]:
    """Yields the cell's states [S, T - 1, H] after each step. The first step receives the target's features. In step k
    (from 0), row i predicts feature i + 1 + k. The last k rows of step k are useless, because the window has no tokens
    left as their inputs.

    features: [S, T, n*Ht]. tokens: int64 [S, T]. drafted: the tokens that each row receives in the steps after the
    first, int64 [S, T - 1, steps - 1 or more]; None: the tokens of the text.
    """
    states = cell.fuse(features[:, :-1])
    rows = states.shape[1]
    seen = _Steps(rows, states.device)
    places = torch.arange(rows, device=states.device)
    for step in range(steps):
        fed = F.pad(tokens[:, 1 + step :], (0, step))
        if step and drafted is not None:
            fed = drafted[..., step - 1]
        embedded = cell.embed(fed, embedding).to(states.dtype)
        states = cell(states, embedded, cell.turn(places + step), seen.attend)
        yield states


class _Steps:
    """The attention of an unrolled window. Each row attends to the rows of the first step up to itself, and to its own
    row in all steps since."""

    def __init__(self, rows: int, device) -> None:
        self._causal = torch.ones(rows, rows, dtype=torch.bool, device=device).tril()
        self._kept: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The attention of a layer in the next step: queries [S, Hq, R, D], keys and values [S, Hkv, R, D] -> [S, Hq,
        R, D], with Hq and Hkv heads, R rows and head size D. Keys and values are stored for later steps."""
        kept = self._kept.setdefault(layer, [])
        kept.append((keys, values))
        if len(kept) == 1:
            return F.scaled_dot_product_attention(
                queries, keys, values, is_causal=True, enable_gqa=True
            )
        groups = queries.shape[1] // keys.shape[1]
        (first_keys, first_values), *own = [
            tuple(part.repeat_interleave(groups, dim=1) for part in pair) for pair in kept
        ]
        scores = (queries @ first_keys.transpose(-1, -2)).masked_fill(~self._causal, float("-inf"))
        mine = [(queries * later).sum(-1, keepdim=True) for later, _ in own]
        scale = queries.shape[-1] ** -0.5
        weights = (torch.cat([scores, *mine], -1) * scale).softmax(-1)
        rows = scores.shape[-1]
        mixed = weights[..., :rows] @ first_values
        for place, (_, later) in enumerate(own, start=rows):
            mixed = mixed + weights[..., place, None] * later
        return mixed


def feature_loss(
    cell: EagleCell,
    features: Tensor,
    tokens: Tensor,
    logits: Tensor,
    counted: Tensor,
    embedding: Borrowed,
    head: Borrowed,
    noise: Tensor | None = None,
) -> Tensor:
    """The loss of EAGLE-1 and 2: the smooth L1 distance between the cell's output and the target's next feature, plus
    the cross-entropy between the laws that follow from the two.

    features: [S, T, H]. tokens: int64 [S, T]. logits: the target's, [S, T, V]; row t is for token t + 1. counted: bool
    [S, T], True for tokens whose prediction enters the loss. noise: [S, T, H], added to the features; None: no noise.
    """
    inputs = features if noise is None else features + noise
    (states,) = unrolled(cell, inputs, tokens, embedding, 1)
    keep = counted[:, 2:]  # row i guesses token i + 2
    guessed, true = states[:, :-1][keep], features[:, 1:-1][keep]
    law = logits[:, 1:-1][keep].float().softmax(-1)
    near = F.smooth_l1_loss(guessed.float(), true.float())
    said = -(law * cell.logits(guessed, head).float().log_softmax(-1)).sum(-1).mean()
    return FEATURES * near + TOKENS * said


def unrolled_loss(
    cell: EagleCell,
    features: Tensor,
    tokens: Tensor,
    logits: Tensor,
    counted: Tensor,
    embedding: Borrowed,
    head: Borrowed,
    steps: int,
    best: Tensor | None = None,
) -> Tensor:
    """The loss of EAGLE-3's training-time test: the cross-entropy over several steps of a draft, where each step after
    the first receives the cell's own states. There is no loss on features. Positions at which the cell's vocabulary
    lacks the target's likeliest token are skipped.

    Shapes are as in ``feature_loss``, except that features are [S, T, n*Ht]. best: the target's likeliest tokens,
    int64 [S, T]; needed if the logits are only for the tokens of the cell's vocabulary, [S, T, v].
    """
    total, weights = tokens.new_zeros((), dtype=torch.float32), 0.0
    possible = counted
    if cell.target_tokens is not None:
        if best is None:
            best, logits = logits.argmax(-1), logits[..., cell.target_tokens]
        possible = F.pad(counted[:, 1:] & cell.t2d[best[:, :-1]], (1, 0))
    for step, states in enumerate(unrolled(cell, features, tokens, embedding, steps)):
        ahead = 1 + step  # row i of this step guesses row i + ahead of the logits
        keep = possible[:, 1 + ahead :]
        taught = logits[:, ahead:-1][keep].float()
        guessed = cell.logits(states[:, : keep.shape[1]][keep], head).float()
        loss = F.cross_entropy(guessed, taught.softmax(-1), reduction="sum")
        weight = DECAY**step
        total = total + weight * loss / counted[:, 1 + ahead :].sum().clamp(min=1)
        weights += weight
    return total / weights


@torch.no_grad()
def accepted(
    cell: EagleCell,
    features: Tensor,
    tokens: Tensor,
    embedding: Borrowed,
    head: Borrowed,
    length: int,
) -> Tensor:
    """For each token as the root, how many tokens of a drafted chain of ``length`` match the text, int64 [S, T]; 0 for
    the first token, which has no feature before it. As long as a draft matches, its tokens are those of the text, so
    one unrolled pass over the text is enough.

    tokens: if this is a greedy text of the target, the result is the number of tokens that a greedy run would accept.
    """
    size, right = tokens.shape[1], []
    for step, states in enumerate(unrolled(cell, features, tokens, embedding, length)):
        best = cell.logits(states, head).argmax(-1)
        table = cell.target_tokens
        best = best if table is None else table[best]
        truth = F.pad(tokens[:, 2 + step :], (0, step), value=-1)  # [S, T - 2]
        right.append(best[:, : size - 2] == truth)
    runs = run_lengths(torch.stack(right, -1).flatten(0, 1)).unflatten(0, (len(tokens), size - 2))
    return F.pad(runs, (1, 1))


def noise_like(features: Tensor, index: int) -> Tensor:
    """Uniform noise between -NOISE and NOISE, in the shape of ``features``; it depends only on ``index``."""
    generator = torch.Generator().manual_seed(index)
    drawn = torch.rand(features.shape, generator=generator).to(features)
    return (2 * drawn - 1) * NOISE
