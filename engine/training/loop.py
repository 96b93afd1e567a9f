"""The training loop of the drafters: a loss for the i-th batch, a budget, resumable checkpoints, and progress lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.optim import MuonAdam
from engine.training.precision import autocast, pick_precision
from engine.training.training_budget import Budget, rate_scale


def fit(
    model: nn.Module,
    loss_of: Callable[[int], tuple[Tensor, int]],
    budget: Budget,
    path: Path,
    muon_rate: float = 0.02,
    adam_rate: float = 3e-3,
    stop_at: float = 1.0,
    say=print,
    every: float = 30.0,
) -> None:
    """Train `model` in place. `loss_of(index)` gives the loss of batch `index` and how many tokens it read; it must
    depend on the index alone, so that a resumed run sees the same batches as an uninterrupted one."""
    optimizer = MuonAdam(model, muon_rate, adam_rate)
    index, saved = 0, load_checkpoint(path)
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        budget.load_state_dict(saved["budget"])
        index = saved["index"]

    def save() -> None:
        save_checkpoint(
            path,
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "budget": budget.state_dict(),
                "index": index,
            },
        )

    device = next(model.parameters()).device.type
    precision = pick_precision(device)
    model.train()
    reported, mark, recent = time.monotonic(), budget.spent_tokens, []
    while budget.progress() < stop_at:
        with autocast(precision, device):
            loss, tokens = loss_of(index)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(rate_scale(budget.progress()))
        optimizer.zero_grad()
        index += 1
        budget.spent_tokens += tokens
        recent.append(loss.item())
        now = time.monotonic()
        if now - reported > every:
            say(
                f"{budget.progress():6.1%}  {budget.seconds() / 60:5.1f} min  {budget.spent_tokens / 1e6:6.2f} M tokens  "
                f"{(budget.spent_tokens - mark) / (now - reported):5.0f} tokens/s  loss {sum(recent) / len(recent):.3f}"
            )
            reported, mark, recent = now, budget.spent_tokens, []
            save()
    save()
    model.eval()
