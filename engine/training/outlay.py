"""The cost of training a part, reported before it begins: memory by counting numbers, time by one batch."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.parts.size_limits import free_bytes
from engine.training.common import UserError
from engine.training.loop import Budget
from engine.training.new_models import parameter_count
from engine.training.student import Student

NUMBER = 4  # bytes: everything is fp32


def memory(student: Student, part: nn.Module, tokens: int) -> dict[str, int]:
    """Bytes by use. tokens: per batch.

    The part counts four times, with its gradient and at most two moments. The target's pass keeps the hidden states of
    all layers, the logits, and the inner values of one layer at a time. A batch's logits count twice wherever they are
    held, because a loss needs them and their logarithms or gradients.
    """
    config = student.config
    width, inner = config.hidden_size, getattr(config, "intermediate_size", 4 * config.hidden_size)
    states = (config.num_hidden_layers + 1) * width + 4 * inner
    known = student.taught_tokens
    of_loss = config.vocab_size if known is None else len(known)
    logits = 2 * of_loss * (1 + student.logit_sets) + (0 if known is None else config.vocab_size)
    return {
        "the target": NUMBER * parameter_count(student.target),
        "the part, its gradients and moments": 4 * NUMBER * parameter_count(part),
        f"a batch of {tokens:,} tokens": NUMBER * tokens * (states + logits),
    }


def check_memory(found: dict[str, int], device: torch.device) -> str:
    """A sentence that reports the memory. Raises UserError where the device that holds the target has less free; the
    target's own memory counts as taken already."""
    need, free = sum(found.values()), _free(device)
    parts = ", ".join(f"{what} {size / 1e9:,.2f} GB" for what, size in found.items())
    if need - found["the target"] > free:
        raise UserError(
            f"The training needs {need / 1e9:,.1f} GB ({parts}); {free / 1e9:,.1f} GB are free beside the target. "
            "Smaller batches (--rows, --length) need less."
        )
    return f"memory: about {need / 1e9:,.2f} GB ({parts})"


def _free(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_bytes()


def told_time(budget: Budget, batch: Callable[[], tuple[Tensor, int]], epoch: int) -> str:
    """How long the training will take, or how many tokens it will read. batch: returns one batch's loss, and how many
    tokens it read. epoch: the tokens read while the target's own text is read once."""
    began = time.monotonic()
    loss, tokens = batch()
    loss.backward()
    seconds = time.monotonic() - began
    if budget.tokens is None:
        total = round(60 * budget.minutes / seconds * tokens)
        told = f"in {budget.minutes:g} minutes about {total:,} tokens"
    else:
        total = budget.tokens
        told = f"{total:,} tokens in about {total / tokens * seconds / 60:,.1f} minutes"
    return f"time: a batch takes {seconds:.2f} s; {told}, {total / epoch:.1f} epochs"
