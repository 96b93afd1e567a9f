"""Trains a language model on files of windows, step by step as a plan says: first shallow, then with its layers
repeated; at the end repetition is unlearned."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.errors import UserError
from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.loop import Budget, fit
from engine.training.plan import TrainingPlan
from engine.training.unlikelihood import Rows, make_rows, unlikely_loss
from engine.training.window_files import read_stories, windows_of

SAVE_SECONDS = 240.0
POOL = 256  # rows against repetition that are made at a time
EVERY = 32  # steps averaged in one point of the curve
LAYER = "model.layers."


def train(
    config: LlamaConfig,
    plan: TrainingPlan,
    windows: Path,
    checkpoint: Path,
    until: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    say=print,
) -> dict:
    """Train from the checkpoint, if there is one, up to step ``until``, on the window files of a folder; returns the last
    checkpoint. On SIGTERM or SIGINT the current step is finished and saved, and the function returns."""
    until = plan.steps if until is None else until
    with told_to_stop() as stopped:
        for layers, end in plan.stages():
            saved = load_checkpoint(checkpoint)
            if saved and "index" not in saved:
                raise UserError(
                    f"{checkpoint.name} is a checkpoint of an older trainer; move it away to begin anew."
                )
            begun = saved["index"] if saved else 0
            if stopped() or (begun >= end and end < plan.steps) or (saved and begun >= until):
                continue
            if saved and depth_of(saved) < layers:
                save_checkpoint(checkpoint, grown(saved, layers))
            model = new_model(config, layers, seed).to(device)
            curve = Curve(checkpoint.with_suffix(".curve.json"), begun, plan, say)
            fit(
                model,
                Lessons(model, plan, windows, curve).loss_of,
                Budget(tokens=plan.steps * plan.step_tokens),
                checkpoint,
                plan.muon_rate,
                plan.adam_rate,
                stop_at=min(until, end) / plan.steps,
                say=lambda line: None,  # the curve says it
                every=SAVE_SECONDS,
                rate=plan.rate,
                averaged_steps=plan.averaged_steps,
                stopped=stopped,
            )
    return load_checkpoint(checkpoint)


def new_model(config: LlamaConfig, layers: int, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    shallow = LlamaConfig.from_dict({**config.to_dict(), "num_hidden_layers": layers})
    model = LlamaForCausalLM(shallow)
    # transformers leaves the padding token's embedding out of the gradient; here that token ends texts
    model.model.embed_tokens.padding_idx = None
    return model


@contextmanager
def told_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM or SIGINT has come since the beginning of the block."""
    told = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: told.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield told.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Lessons:
    """The loss of each step of a plan, for a model that is being trained."""

    def __init__(self, model: LlamaForCausalLM, plan: TrainingPlan, windows: Path, curve: Curve):
        self.model, self.plan, self.windows, self.curve = model, plan, windows, curve
        self.pool: Rows | None = None

    def loss_of(self, step: int) -> tuple[Tensor, int]:
        """A few windows at a time: all but the last are sent backward here, so that only the last still hold what a
        backward pass needs; their loss is returned. The curve gets the loss of all usual windows."""
        usual, last = 0.0, None
        for loss, counts in self._losses(step):
            if last is not None:
                last.backward()
            last = loss
            if counts:
                usual += loss.item()
        self.curve.add(step + 1, usual)
        return last, self.plan.step_tokens

    def _losses(self, step: int) -> Iterator[tuple[Tensor, bool]]:
        """Shares of the step's loss, and whether each is of the usual windows or against repetition."""
        tokens, counted = windows_of(self.windows, self.plan.file(step).number).batch(
            step % self.plan.steps_per_file, self.plan.rows(step)
        )
        weights = counted.float().roll(-1, 1)
        weights[:, -1] = 0  # what follows a window is not known
        weights /= weights.sum()
        for some, wanted, share in self._cut(tokens, tokens.roll(-1, 1), weights):
            losses = F.cross_entropy(self._logits(some), wanted.flatten(), reduction="none")
            yield (losses * share.flatten()).sum(), True
        if self.plan.unlearns(step):
            rows = self._rows(step)
            for some, *rest in self._cut(*vars(rows).values()):
                loss = unlikely_loss(self._logits(some), *(one.flatten() for one in rest))
                yield self.plan.unlikely_weight * loss, False

    def _cut(self, *columns: Tensor) -> Iterator[list[Tensor]]:
        rows = max(1, self.plan.micro_tokens // columns[0].shape[1])
        device = self.model.device
        for some in zip(*(one.split(rows) for one in columns), strict=True):
            yield [one.to(device) for one in some]

    def _logits(self, tokens: Tensor) -> Tensor:
        """int64 [S, T] -> [S * T, V]"""
        return self.model(input_ids=tokens, use_cache=False).logits.flatten(0, 1).float()

    def _rows(self, step: int) -> Rows:
        """This step's rows against repetition, weighted so that their loss is a mean."""
        count, every = self.plan.unlikely_rows, self.plan.unlikely_every
        if self.pool is None or step % every == 0:
            stories, eos = read_stories(self.windows), self.model.config.eos_token_id
            self.model.eval()
            self.pool = make_rows(self.model, stories, POOL, eos, str(step))
            self.model.train()
        first = step % every * count % len(self.pool.tokens)
        some = self.pool.part(slice(first, first + count))
        return Rows(
            some.tokens,
            some.wanted,
            some.weights / some.weights.sum().clamp(min=1),
            some.unwanted,
            some.unlikely / (some.unlikely > 0).sum().clamp(min=1),
        )


class Curve:
    """The loss against the tokens read, kept in a small file: points [step, tokens, loss, tokens per second]; the file's
    points are kept up to the step where training resumes."""

    def __init__(self, path: Path, step: int, plan: TrainingPlan, say=print):
        self.path, self.plan, self.say = path, plan, say
        known = json.loads(path.read_text()) if path.exists() else []
        self.points = [p for p in known if p[0] <= step]
        self.recent: list[float] = []
        self.since = time.monotonic()

    def add(self, step: int, loss: float) -> None:
        self.recent.append(loss)
        if step % EVERY:
            return
        now, plan = time.monotonic(), self.plan
        speed = len(self.recent) * plan.step_tokens / (now - self.since)
        mean = sum(self.recent) / len(self.recent)
        self.points.append([step, step * plan.step_tokens, round(mean, 4), round(speed)])
        self.say(
            f"step {step} of {plan.steps}  {step * plan.step_tokens / 1e6:.2f} M tokens  loss {mean:.3f}  "
            f"{speed:.0f} tokens/s  windows of {plan.file(step - 1).length}  {time.strftime('%H:%M:%S')}"
        )
        self.recent, self.since = [], now
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.points) + "\n")
        temporary.replace(self.path)


def depth_of(saved: dict) -> int:
    """How many layers the model of a checkpoint has."""
    return 1 + max(int(name.split(".")[2]) for name in saved["model"] if name.startswith(LAYER))


def grown(saved: dict, layers: int) -> dict:
    """A checkpoint whose stack of layers is repeated until there are ``layers``; each copy takes over the moments of its
    original (G_stack of Du et al., "Stacking Your Transformers", 2024)."""
    depth, optimizer = depth_of(saved), saved["optimizer"]

    def repeated(named: dict) -> dict:
        rest = {name: value for name, value in named.items() if not name.startswith(LAYER)}
        for layer in range(layers):
            of = f"{LAYER}{layer % depth}."
            copies = {name: value for name, value in named.items() if name.startswith(of)}
            rest |= {f"{LAYER}{layer}.{n.removeprefix(of)}": v for n, v in copies.items()}
        return rest

    return {
        **saved,
        "model": repeated(saved["model"]),
        "optimizer": {**optimizer, "state": repeated(optimizer["state"])},
    }


def as_model(config: LlamaConfig, saved: dict, mean: bool = False) -> LlamaForCausalLM:
    """A checkpoint as a model of transformers; mean: of the mean of its weights."""
    model = new_model(config, depth_of(saved), 0)
    model.load_state_dict(saved["model"])
    if mean:
        means = {name: state["mean"] for name, state in saved["optimizer"]["state"].items()}
        model.load_state_dict(means, strict=False)  # head and embeddings are one
    return model
