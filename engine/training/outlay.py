"""Estimates, before a training begins, the memory that it needs (from the sizes of the models) and its time (from one
batch)."""

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

NUMBER = 4  # bytes of a number; all are fp32


def memory(student: Student, part: nn.Module, tokens: int) -> dict[str, int]:
    """The estimated memory of a training, as a dictionary: what memory is used for, in words -> bytes. part: the model
    that learns. tokens: the number of tokens in a batch.

    The part's size enters four times, for its weights, its gradient and at most two moments. For the target's pass,
    there are the hidden states of all layers, the logits, and the inner values of one layer at a time. Each set of
    logits enters twice, because a loss also needs their logarithms or gradients.
    """
    config = student.config
    width, inner = config.hidden_size, getattr(config, "intermediate_size", 4 * config.hidden_size)
    states = (config.num_hidden_layers + 1) * width + 4 * inner
    table = student.taught_tokens
    of_loss = config.vocab_size if table is None else len(table)
    logits = 2 * of_loss * (1 + student.logit_sets) + (0 if table is None else config.vocab_size)
    return {
        "the target": NUMBER * parameter_count(student.target),
        "the part, its gradients and moments": 4 * NUMBER * parameter_count(part),
        f"a batch of {tokens:,} tokens": NUMBER * tokens * (states + logits),
    }


def check_memory(found: dict[str, int], device: torch.device) -> str:
    """A line that reports the estimated memory. found: the result of ``memory``. Raises UserError if the target's
    device has too little free memory. The target itself is left out of this check, because it is already loaded."""
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
    """A line that estimates how long the training will take, or how many tokens it will read in its time, from the
    time of one batch. batch: computes a batch, and returns its loss and its number of tokens. epoch: how many tokens
    the training reads while it goes through the target's own text once."""
    began = time.monotonic()
    loss, tokens = batch()
    loss.backward()
    seconds = time.monotonic() - began
    if budget.tokens is None:
        total = round(60 * budget.minutes / seconds * tokens)
        amount = f"in {budget.minutes:g} minutes about {total:,} tokens"
    else:
        total = budget.tokens
        amount = f"{total:,} tokens in about {total / tokens * seconds / 60:,.1f} minutes"
    return f"time: a batch takes {seconds:.2f} s; {amount}, {total / epoch:.1f} epochs"
