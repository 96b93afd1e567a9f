"""The trainer of every recipe: a loss for the i-th batch, a budget with its learning rate, resumable checkpoints, and
progress lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.optim import MuonAdam

LOST_STEPS = 10  # steps in a row with a gradient that is not finite, after which a training ends
WORTH = 1.3  # bfloat16 must be this many times as fast as float32 to replace it


@dataclass
class Budget:
    """Give `minutes` (the wall clock, resumed time included) or `tokens`. `progress` runs from 0 to 1. until: of the
    monotonic clock, the time at which it ends, whatever else took time meanwhile."""

    minutes: float | None = None
    tokens: int | None = None
    spent_seconds: float = 0.0
    spent_tokens: int = 0
    until: float | None = None
    _since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, args, minutes: float) -> Budget:
        """The budget that the command line names; these minutes where it names none."""
        return cls(tokens=args.tokens) if args.tokens else cls(args.minutes or minutes)

    def seconds(self) -> float:
        return self.spent_seconds + time.monotonic() - self._since

    def progress(self) -> float:
        if self.tokens is not None:
            return min(1.0, self.spent_tokens / self.tokens)
        if self.until is not None:
            left, spent = self.until - time.monotonic(), self.seconds()
            return spent / (spent + left) if left > 0 else 1.0
        return min(1.0, self.seconds() / (60 * self.minutes))

    def part(self, share: float) -> Budget:
        """A fresh budget of this share."""
        minutes, tokens = self.minutes, self.tokens
        return Budget(
            None if minutes is None else share * minutes,
            None if tokens is None else round(share * tokens),
        )

    def state_dict(self) -> dict:
        return {"spent_seconds": self.seconds(), "spent_tokens": self.spent_tokens}

    def load_state_dict(self, saved: dict) -> None:
        self.spent_seconds, self.spent_tokens = saved["spent_seconds"], saved["spent_tokens"]
        self._since = time.monotonic()


def rate_scale(
    progress: float,
    warmup: float = 0.02,
    decay_from: float = 0.55,
    floor: float = 0.03,
    least: float = 0.05,
) -> float:
    """Warm up from ``least``, stay, decay linearly to ``floor`` (WSD)."""
    if progress < warmup:
        return max(least, progress / warmup)
    if progress < decay_from:
        return 1.0
    return floor + (1 - floor) * (1 - progress) / (1 - decay_from)


def pick_precision(device: str = "cpu") -> torch.dtype:
    """bfloat16 on a GPU, and where a measurement of this processor finds it worth it, else float32."""
    if device == "cuda":
        return torch.bfloat16
    faster = _seconds(torch.float32, device) / _seconds(torch.bfloat16, device)
    return torch.bfloat16 if faster > WORTH else torch.float32


def _seconds(dtype: torch.dtype, device: str) -> float:
    """The shortest of twelve timings of one product."""
    a, b = (torch.randn(*shape, device=device).to(dtype) for shape in ((1024, 384), (384, 1024)))
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    return best


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
    rate: Callable[[float], float] = rate_scale,
    averaged_steps: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Train `model` in place. `loss_of(index)` gives the loss of batch `index` and how many tokens it read; it must
    depend on the index alone, so that a resumed run sees the same batches as an uninterrupted one.

    every: seconds between checkpoints. rate: the factor on both rates, by progress. averaged_steps: see `MuonAdam`.
    stopped: asked before each batch; True ends the training as ``stop_at`` does."""
    optimizer = MuonAdam(model, muon_rate, adam_rate, averaged_steps=averaged_steps)
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
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # of the optimizer
    model.train()
    reported, mark, recent, lost = time.monotonic(), budget.spent_tokens, [], 0
    while budget.progress() < stop_at and not stopped():
        halves = torch.autocast(device, precision) if precision != torch.float32 else nullcontext()
        with halves:
            loss, tokens = loss_of(index)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        lost = (
            0 if norm.isfinite() else lost + 1
        )  # a gradient that overflows now and then changes nothing
        if lost == LOST_STEPS:
            raise FloatingPointError(
                f"{lost} gradients in a row, up to step {index}, are not finite"
            )
        if not lost:
            optimizer.step(rate(budget.progress()))
        optimizer.zero_grad()
        index += 1
        budget.spent_tokens += tokens
        recent.append(loss.detach())  # a number on the host would make it wait for the GPU
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
