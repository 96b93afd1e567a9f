"""The recipe `captions`: a target that sees pictures, its draft, and two parts that draft for it, the gate of ``specvlm`` and the cell
of ``msd``.

    python -m engine.training captions        -> <models>/families/captions, an hour of one thread

A stopped training resumes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.methods.shared.eagle_layout import write_cell
from engine.methods.shared.operator_gate import OPERATORS, OperatorGate
from engine.methods.shared.picture_cell import PictureCell
from engine.model.captions import CaptionsForCausalLM
from engine.parts.digest import FIELD, digest_of
from engine.parts.files import WEIGHTS, halve
from engine.parts.opening import causal_model
from engine.parts.stored_file import compress
from engine.scenes.scene_talk import KINDS
from engine.training.caption_family import ROWS, STEPS, seen_by, train_draft, train_target
from engine.training.caption_text import IGNORED, PATCHES, Batch, Talks, caption_words
from engine.training.cell_training import FEATURES, NOISE, TOKENS, eagle_config, new_cell
from engine.training.common import say
from engine.training.loop import Budget, fit

MINUTES = 60
PRICE = 0.5
"""Nats per token that a gate would pay for reading the whole picture instead of none of it."""


def captions(args) -> None:
    torch.set_num_threads(1)
    budget, folder = Budget.of(args, MINUTES), args.models / "families" / "captions"
    for train, share in (
        (train_target, 0.7),
        (train_draft, 0.14),
        (train_gate, 0.03),
        (train_msd, 0.13),
    ):
        train(folder, args.checkpoints, budget.part(share), args.seed)


def train_gate(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0) -> None:
    """A gate for the target and the draft in this folder -> <folder>/parts/gate."""
    target, draft = (
        causal_model(str(path)).eval().requires_grad_(False) for path in (folder, folder / "draft")
    )
    talks, gate = Talks(caption_words(), seed + 2), OperatorGate(target.config.hidden_size)

    def loss(index: int) -> tuple[Tensor, int]:
        batch = talks.batch(index, ROWS, KINDS[index % len(KINDS)])
        with torch.no_grad():
            costs = torch.stack([_cost(draft, batch, way) for way in OPERATORS], -1)
            states = _states(target, batch, before_last=True)
        root = (batch.labels != IGNORED).int().argmax(1)
        asked = states[torch.arange(len(root)), root - 1]
        return (gate(asked.float()).softmax(-1) * costs).sum(-1).mean(), batch.tokens.numel()

    fit(gate, loss, budget, checkpoints / "captions-gate.pt", say=say)
    gate.save(folder / "parts" / "gate", {FIELD: digest_of(folder)})


def _cost(draft: CaptionsForCausalLM, batch: Batch, way: str) -> Tensor:
    """[B]: nats per token of the answers, and the price of the rows that the draft reads for the picture."""
    kept = np.arange(0, PATCHES, 4)
    batch, logits = seen_by(draft, batch, way, kept)
    labels = batch.labels
    losses = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(labels)
    rows = 0 if way == OPERATORS[0] else len(kept)
    return losses.sum(1) / (labels != IGNORED).sum(1) + PRICE * rows / PATCHES


def _states(target: CaptionsForCausalLM, batch: Batch, before_last: bool = False) -> Tensor:
    """[B, T, H]: the normed state after the last layer, or that before it."""
    output = target.model(
        inputs_embeds=target.rows(batch.tokens, batch.patches),
        attention_mask=batch.mask,
        position_ids=batch.places,
        use_cache=False,
        output_hidden_states=before_last,
    )
    return output.hidden_states[-2] if before_last else output.last_hidden_state


def train_msd(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0) -> None:
    """A cell for the target in this folder -> <folder>/parts/msd. Text and pictures are learned together; the paper begins with
    text alone."""
    target = causal_model(str(folder)).eval().requires_grad_(False)
    talks = Talks(caption_words(), seed + 3)
    torch.manual_seed(0)
    cell = PictureCell.of(new_cell(eagle_config(target.config, "eagle"), target))

    def loss(index: int) -> tuple[Tensor, int]:
        batch = talks.batch(index, ROWS)
        return msd_loss(cell, target, batch), batch.tokens.numel()

    fit(
        cell, loss, budget, checkpoints / "captions-msd.pt", adam_rate=1e-3, muon_rate=0.01, say=say
    )
    part = folder / "parts" / "msd"
    write_cell(cell, part, {FIELD: digest_of(folder)})
    halve(part, STEPS)
    compress(part / WEIGHTS)


def msd_loss(cell: PictureCell, target: CaptionsForCausalLM, batch: Batch) -> Tensor:
    """EAGLE's loss on the answers. Row j is the pair of token j and of the feature at the token before it in its text; the first
    token of a text stands behind the last patch."""
    with torch.no_grad():
        features = _states(target, batch).float()
        law = target.lm_head(features).softmax(-1)
        embedded = target.rows(batch.tokens, batch.patches)
    columns = torch.arange(batch.tokens.shape[1])
    starts = batch.texts != batch.texts.roll(1, 1)
    before = torch.where(starts, torch.tensor(PATCHES - 1), columns - 1)[:, 1:]
    states = features.gather(1, before[..., None].expand(-1, -1, features.shape[-1]))
    states = states + NOISE * (2 * torch.rand_like(states) - 1)
    states[:, : PATCHES - 1] = 0.0

    def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        mask = batch.mask[:, :, 1:, 1:]
        return F.scaled_dot_product_attention(queries, keys, values, mask, enable_gqa=True)

    made = cell(states, embedded[:, 1:], cell.turn(batch.places[:, 1:] - 1), attend)
    counted = batch.labels[:, 1:] != IGNORED
    missed = F.smooth_l1_loss(made.float(), features[:, 1:], reduction="none").mean(-1)
    drafted = target.lm_head(made).float().log_softmax(-1)
    parted = -(law[:, 1:] * drafted).sum(-1)
    return (FEATURES * missed + TOKENS * parted)[counted].mean()
