"""Trains the gate of ``specvlm``, and its operators, for the family captions; the target and the draft model are
frozen.

Huang et al., SpecVLM: Fast Speculative Decoding in Vision-Language Models (2025): in training, a Gumbel softmax draws
the gate's choice.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.methods.shared.operator_gate import OPERATORS, TEXT_ONLY, OperatorGate
from engine.model.captions import CaptionsForCausalLM
from engine.parts.digest import FIELD, digest_of
from engine.parts.opening import causal_model
from engine.training.caption_family import logits_of, states_of
from engine.training.caption_text import IGNORED, PLACES, Batch, Talks, caption_words
from engine.training.common import say
from engine.training.loop import Budget, fit

PRICE = 0.1
"""The cost, in nats per token, of seeing a picture with one row (hidden vector) for each of its patches. Fewer rows
cost proportionally less."""
LEARNED = 2  # how many of ``OPERATORS`` have weights; they are the last ones


def train_gate(folder: Path, checkpoints: Path, budget: Budget, seed: int = 0) -> None:
    """Train a gate for the target and the draft model in this folder, and write it to <folder>/parts/gate."""
    target, draft = (
        causal_model(str(path)).eval().requires_grad_(False) for path in (folder, folder / "draft")
    )
    talks = Talks(caption_words(), seed + 2)
    torch.manual_seed(0)
    gate = OperatorGate.beginning(target.config.hidden_size, draft.config.hidden_size, PLACES)

    def loss(index: int) -> tuple[Tensor, int]:
        batch = talks.mixed(index)
        costs = torch.stack([_cost(draft, gate, batch, way) for way in OPERATORS], -1)
        with torch.no_grad():
            states = states_of(target, batch, before_last=True)
        root = ((batch.labels != IGNORED) & (batch.texts == 1)).int().argmax(1)
        scores = gate(states[torch.arange(len(root)), root - 1].float())
        drawn = F.gumbel_softmax(scores, dim=-1)
        chosen = (drawn * costs.detach()).sum(-1).mean()
        return chosen + costs[:, -LEARNED:].mean(0).sum(), batch.tokens.numel()

    fit(gate, loss, budget, checkpoints / "captions-gate.pt", say=say)
    gate.save(folder / "parts" / "gate", {FIELD: digest_of(folder)})


def _cost(draft: CaptionsForCausalLM, gate: OperatorGate, batch: Batch, way: str) -> Tensor:
    """The cost [B] of an operator for each of B pictures or films: the draft model's loss on the first answer, in nats
    per token, plus ``PRICE`` for the rows of the picture that the operator leaves. way: the name of the operator."""
    patches, rows = batch.patches.shape[1], 0
    if way == TEXT_ONLY:
        logits = logits_of(draft, batch, batch.patches[:, :0])
    else:
        text = draft.rows(batch.tokens[:, patches:], batch.patches[:, :0])
        whole = draft.rows(batch.tokens[:, :patches], batch.patches)
        reduced = gate.reduced(way, whole)
        rows = reduced.shape[1]
        batch = batch.without(torch.arange(rows))
        logits = logits_of(draft, batch, torch.cat([reduced, text], 1), embedded=True)
    labels = batch.labels.masked_fill(batch.texts != 1, IGNORED)
    losses = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(labels)
    return losses.sum(1) / (labels != IGNORED).sum(1) + PRICE * rows / patches
