"""Trains a language model on files of windows by a plan: first with few layers, then with these layers repeated. Near
the end, the model also learns not to repeat itself."""

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

SAVE_SECONDS = 240.0  # seconds between checkpoints
POOL = 256  # rows against repetition that are made at once
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
    """Train a model on the window files in the folder ``windows``, up to step ``until`` (None: to the end of the
    plan); returns the last checkpoint. If there is a checkpoint, the training goes on from it. On SIGTERM or SIGINT,
    the current step is finished and saved, and the function returns. Raises UserError for a checkpoint of an older
    trainer."""
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
                say=lambda line: None,  # the curve reports instead
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
    # transformers gives the padding token's embedding no gradient; here that token also ends texts, so it has to learn
    model.model.embed_tokens.padding_idx = None
    return model


@contextmanager
def told_to_stop() -> Iterator[Callable[[], bool]]:
    """A context manager whose value is a function. The function returns whether SIGTERM or SIGINT has come since the
    context was entered."""
    stop_event = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop_event.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop_event.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Lessons:
    """Computes the loss of each step of a plan for the model in training."""

    def __init__(self, model: LlamaForCausalLM, plan: TrainingPlan, windows: Path, curve: Curve):
        self.model, self.plan, self.windows, self.curve = model, plan, windows, curve
        self.pool: Rows | None = None

    def loss_of(self, step: int) -> tuple[Tensor, int]:
        """The loss of the last few windows of a step, and the step's number of tokens. The step's windows are computed
        a few at a time. For all but the last few, the backward pass is already done here, so memory for a backward
        pass is only needed for a few windows at a time. The curve gets the loss of all windows of text, without the
        rows against repetition."""
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
        """Yields pairs for a few windows at a time: their share of the step's loss, and True for windows of text or
        False for rows against repetition (`unlikelihood`)."""
        tokens, counted = windows_of(self.windows, self.plan.file(step).number).batch(
            step % self.plan.steps_per_file, self.plan.rows(step)
        )
        weights = counted.float().roll(-1, 1)
        weights[:, -1] = 0  # the token after a window is unknown
        weights /= weights.sum()
        for token_rows, next_tokens, share in self._cut(tokens, tokens.roll(-1, 1), weights):
            losses = F.cross_entropy(
                self._logits(token_rows), next_tokens.flatten(), reduction="none"
            )
            yield (losses * share.flatten()).sum(), True
        if self.plan.unlearns(step):
            rows = self._rows(step)
            for token_rows, *rest in self._cut(*vars(rows).values()):
                loss = unlikely_loss(
                    self._logits(token_rows), *(column.flatten() for column in rest)
                )
                yield self.plan.unlikely_weight * loss, False

    def _cut(self, *columns: Tensor) -> Iterator[list[Tensor]]:
        rows = max(1, self.plan.micro_tokens // columns[0].shape[1])
        device = self.model.device
        for pieces in zip(*(column.split(rows) for column in columns), strict=True):
            yield [column.to(device) for column in pieces]

    def _logits(self, tokens: Tensor) -> Tensor:
        """The model's logits for tokens int64 [S, T], as [S * T, V] in float32: S windows, T tokens of each, V
        vocabulary."""
        return self.model(input_ids=tokens, use_cache=False).logits.flatten(0, 1).float()

    def _rows(self, step: int) -> Rows:
        """The rows against repetition (`unlikelihood`) of this step. Their weights make their loss a mean."""
        count, every = self.plan.unlikely_rows, self.plan.unlikely_every
        if self.pool is None or step % every == 0:
            stories, eos = read_stories(self.windows), self.model.config.eos_token_id
            self.model.eval()
            self.pool = make_rows(self.model, stories, POOL, eos, str(step))
            self.model.train()
        first = step % every * count % len(self.pool.tokens)
        part = self.pool.part(slice(first, first + count))
        return Rows(
            part.tokens,
            part.wanted,
            part.weights / part.weights.sum().clamp(min=1),
            part.unwanted,
            part.unlikely / (part.unlikely > 0).sum().clamp(min=1),
        )


class Curve:
    """The curve of the loss, stored in a small file as points [step, tokens so far, loss, tokens per second]. When a
    training resumes from a checkpoint, later points than the checkpoint are dropped."""

    def __init__(self, path: Path, step: int, plan: TrainingPlan, say=print):
        self.path, self.plan, self.say = path, plan, say
        points = json.loads(path.read_text()) if path.exists() else []
        self.points = [p for p in points if p[0] <= step]
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
    """The checkpoint of a deeper model: the stack of layers is repeated until there are ``layers`` layers. Each copy
    has the weights and the optimizer's moments of its original (G_stack of Du et al., "Stacking Your Transformers",
    2024)."""
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
    """The model of a checkpoint. mean: whether it has the running mean of the weights instead of the last weights."""
    model = new_model(config, depth_of(saved), 0)
    model.load_state_dict(saved["model"])
    if mean:
        means = {name: state["mean"] for name, state in saved["optimizer"]["state"].items()}
        model.load_state_dict(means, strict=False)  # the head shares the weights of the embeddings
    return model
