"""Next-token training of a causal language model on packed windows: the loop of the target and of the draft's start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM

from .budget import Budget, rate_scale
from .checkpoint import load_checkpoint, save_checkpoint
from .models import grow
from .optim import MuonAdam
from .packing import write_windows
from .precision import autocast, pick_precision


@dataclass(frozen=True)
class Stage:
    """Up to `until` (share of the budget): `layers` deep, `rows` windows of `length` tokens a step."""

    until: float
    layers: int
    length: int
    rows: int


@dataclass(frozen=True)
class Plan:
    stages: tuple[Stage, ...]
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    window_tokens: int = 6_000_000  # of each length, made once, gone through again if need be
    compile: bool = False  # measured on two cores: a minute to compile, nothing gained
    save_seconds: float = 240.0
    report_seconds: float = 30.0
    validate_seconds: float = 420.0


def token_loss(model, tokens: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the counted tokens. tokens int64 [B, T], counted bool [B, T]."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = counted[:, 1:].flatten().to(losses.dtype)
    return (losses * weights).sum() / weights.sum().clamp(min=1)


class Windows:
    """The training text of one length, on disk, read in order."""

    def __init__(self, folder: Path, tokenizer, data: Path, length: int, count: int, seed: int):
        path = folder / f"windows-{length}-{count}-{seed}.npz"
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_windows(path, tokenizer, data, length, count, seed)
        with np.load(path) as saved:
            self.tokens, self.counted = saved["tokens"], saved["counted"]

    def batch(self, start: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        index = np.arange(start, start + rows) % len(self.tokens)
        return torch.from_numpy(self.tokens[index].astype(np.int64)), torch.from_numpy(
            self.counted[index]
        )


class Trainer:
    """Trains through the stages of a plan; `run(stop_at)` returns at that progress, or at the end of the budget.
    `start` is the folder of a model to go on from; its depth must be that of the plan's first stage."""

    def __init__(
        self,
        config_of,
        tokenizer,
        plan: Plan,
        budget: Budget,
        data: Path,
        folder: Path,
        name: str,
        seed: int = 0,
        validate=None,
        say=print,
        start: Path | None = None,
    ):
        torch.manual_seed(seed)
        self.config_of, self.tokenizer, self.plan, self.budget = config_of, tokenizer, plan, budget
        self.data, self.folder, self.name, self.seed = data, folder, name, seed
        self.validate, self.say = validate, say
        self.precision = pick_precision()
        self.seen: dict[int, int] = {}  # window length -> windows used
        self.sources: dict[int, Windows] = {}
        self._build(plan.stages[0].layers)
        if start is not None:
            self.model.load_state_dict(LlamaForCausalLM.from_pretrained(start).state_dict())
        self._resume()

    def _build(self, layers: int) -> None:
        self.model = LlamaForCausalLM(self.config_of(layers))
        self._prepare()

    def _prepare(self) -> None:
        self.optimizer = MuonAdam(self.model, self.plan.muon_rate, self.plan.adam_rate)
        self.loss = torch.compile(token_loss, dynamic=False) if self.plan.compile else token_loss

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.name}.pt"

    def _resume(self) -> None:
        saved = load_checkpoint(self._path)
        if saved is None:
            return
        self._build(saved["layers"])
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.budget.load_state_dict(saved["budget"])
        self.seen = saved["seen"]
        self.say(f"resumed at {self.budget.progress():.1%}")

    def save(self) -> None:
        save_checkpoint(
            self._path,
            {
                "layers": len(self.model.model.layers),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "budget": self.budget.state_dict(),
                "seen": self.seen,
            },
        )

    def _stage(self) -> Stage:
        return next(
            (s for s in self.plan.stages if self.budget.progress() < s.until), self.plan.stages[-1]
        )

    def _grow(self, layers: int) -> None:
        old, older = len(self.model.model.layers), self.optimizer
        self.model = grow(self.model, layers)
        self._prepare()
        self.optimizer.inherit(older, old)
        self.say(f"grown from {old} to {layers} layers")

    def _batch(self, stage: Stage) -> tuple[torch.Tensor, torch.Tensor]:
        if stage.length not in self.sources:
            self.sources[stage.length] = Windows(
                self.folder,
                self.tokenizer,
                self.data,
                stage.length,
                self.plan.window_tokens // stage.length,
                self.seed + stage.length,
            )
        start = self.seen.get(stage.length, 0)
        self.seen[stage.length] = start + stage.rows
        return self.sources[stage.length].batch(start, stage.rows)

    def step(self) -> float:
        stage = self._stage()
        if len(self.model.model.layers) < stage.layers:
            self._grow(stage.layers)
        tokens, counted = self._batch(stage)
        with autocast(self.precision):
            loss = self.loss(self.model, tokens, counted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step(rate_scale(self.budget.progress()))
        self.optimizer.zero_grad()
        self.budget.spent_tokens += tokens.numel()
        return loss.item()

    def run(self, stop_at: float = 1.0) -> LlamaForCausalLM:
        self.model.train()
        saved = validated = reported = time.monotonic()
        mark, recent = self.budget.spent_tokens, []
        while self.budget.progress() < stop_at:
            recent.append(self.step())
            now = time.monotonic()
            if now - reported > self.plan.report_seconds:
                speed = (self.budget.spent_tokens - mark) / (now - reported)
                self.say(
                    f"{self.budget.progress():6.1%}  {self.budget.seconds() / 60:5.1f} min  {self.budget.spent_tokens / 1e6:6.2f} M tokens  "
                    f"{speed:5.0f} tokens/s  loss {sum(recent) / len(recent):.3f}  length {self._stage().length}  layers {len(self.model.model.layers)}"
                )
                reported, mark, recent = now, self.budget.spent_tokens, []
            if now - saved > self.plan.save_seconds:
                self.save()
                saved = now
            if self.validate and now - validated > self.plan.validate_seconds:
                self.say(self.validate(self.model))
                validated = now
        self.save()
        return self.model
