"""The training loop of all recipes: a budget of time or tokens, the schedule of the learning rate, checkpoints from
which it resumes, and lines about its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.optim import MuonAdam

LOST_STEPS = 10  # after so many steps in a row with a gradient that is not finite, a training fails
WORTH = 1.3  # bfloat16 is used if it is this many times as fast as float32


@dataclass
class Budget:
    """The length of a training, given in one of three ways. `minutes`: of wall-clock time, including earlier runs of a
    resumed training. `tokens`: how many the training reads. `until`: the end, in seconds on the monotonic clock."""

    minutes: float | None = None
    tokens: int | None = None
    spent_seconds: float = 0.0
    spent_tokens: int = 0
    until: float | None = None
    _since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, args, minutes: float) -> Budget:
        """The budget that the command line names; if it names none, ``minutes`` minutes."""
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
        """A new budget with this share of the minutes or tokens, all of it unspent."""
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
    """The factor on the learning rates (WSD): it rises from ``least`` to 1 while progress is below ``warmup``, stays 1
    until ``decay_from``, and then falls linearly to ``floor``."""
    if progress < warmup:
        return max(least, progress / warmup)
    if progress < decay_from:
        return 1.0
    return floor + (1 - floor) * (1 - progress) / (1 - decay_from)


@cache
def pick_precision(device: str = "cpu") -> torch.dtype:
    """bfloat16 on a GPU, and on a processor for which a short measurement finds bfloat16 at least ``WORTH`` times as
    fast as float32; otherwise float32."""
    if device == "cuda":
        return torch.bfloat16
    whole = _seconds(torch.float32, device)
    half = _seconds(torch.bfloat16, device, hopeless=10 * whole)
    return torch.bfloat16 if whole > WORTH * half else torch.float32


def _seconds(dtype: torch.dtype, device: str, hopeless: float = inf) -> float:
    """The shortest of twelve timings of a matrix product in this number type, in seconds. No further product is timed
    after one that takes longer than ``hopeless``: on a processor without bfloat16 arithmetic, a product in that type
    can take a hundred times as long as in float32."""
    a, b = (torch.randn(*shape, device=device).to(dtype) for shape in ((1024, 384), (384, 1024)))
    timings: list[float] = []
    while len(timings) < 12 and max(timings, default=0.0) < hopeless:
        start = time.perf_counter()
        torch.mm(a, b)
        timings.append(time.perf_counter() - start)
    return min(timings)


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
    """Train `model` in place. `loss_of(index)` returns the loss of batch `index` and its number of tokens. It must
    depend on the index alone, so that a resumed run has the same batches as an uninterrupted one. Raises
    FloatingPointError after ``LOST_STEPS`` steps in a row with a gradient that is not finite.

    path: the file of the checkpoint. stop_at: the progress (0 to 1) at which the training pauses. every: seconds
    between checkpoints. rate: progress -> the factor on both learning rates. averaged_steps: see `MuonAdam`. stopped:
    called before each batch; if it returns True, the training pauses.
    """
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
        torch.set_float32_matmul_precision("high")  # for the optimizer's products
    model.train()
    reported, mark, recent, lost = time.monotonic(), budget.spent_tokens, [], 0
    while budget.progress() < stop_at and not stopped():
        halves = torch.autocast(device, precision) if precision != torch.float32 else nullcontext()
        with halves:
            loss, tokens = loss_of(index)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        lost = 0 if norm.isfinite() else lost + 1  # a step is skipped if its gradient overflows
        if lost == LOST_STEPS:
            raise FloatingPointError(
                f"{lost} gradients in a row, up to step {index}, are not finite"
            )
        if not lost:
            optimizer.step(rate(budget.progress()))
        optimizer.zero_grad()
        index += 1
        budget.spent_tokens += tokens
        recent.append(loss.detach())  # ``item()`` would make the host wait for the GPU
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
