"""Trains a language model in several processes of one thread each: on a shared machine this loses less than one process
with several threads, where every product waits for the slowest thread. The processes share all vectors, so nothing is
sent: each adds up the gradients of its own windows, then updates the parameters it owns.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import torch
import torch.multiprocessing as mp
from torch import Tensor

from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.chunked_loss import ChunkedLoss, likely, likely_and_unlikely
from engine.training.curve import Curve
from engine.training.functional_llama import hidden_states, layer, rotation
from engine.training.plan import TrainingPlan
from engine.training.shared_optim import OwnedParameters
from engine.training.shared_state import SharedState, as_model
from engine.training.unlikelihood import Rows, make_rows
from engine.training.window_files import WindowFiles, read_stories

PATIENCE = 1800.0  # seconds to wait for another process
SAVE_SECONDS = 240.0
LOST_STEPS = 10
POOL = 128  # rows against repetition that a process makes at a time


def rows_for(rank: int, processes: int, count: int) -> slice:
    return slice(rank * count // processes, (rank + 1) * count // processes)


class Worker:
    """One process. All of them take the same steps; the first also saves and reports."""

    def __init__(
        self,
        rank: int,
        processes: int,
        state: SharedState,
        barrier,
        plan: TrainingPlan,
        windows: Path,
        checkpoint: Path,
        compiled: bool,
    ):
        self.rank, self.processes, self.state, self.barrier = rank, processes, state, barrier
        self.plan, self.windows, self.checkpoint = plan, windows, checkpoint
        self.files = WindowFiles(windows)
        self.pool: Rows | None = None
        self.lost = 0  # steps in a row whose gradient was not finite
        compiler = torch.compile if compiled else lambda function, **_: function
        self.layer = compiler(layer, dynamic=False)
        self.likely = compiler(likely, dynamic=False)
        self.unlikely = compiler(likely_and_unlikely, dynamic=False)
        self._bind()

    def _bind(self) -> None:
        """Adopt the depth of the model: make views of the shared vectors."""
        self.depth = int(self.state.depth)
        self.shape = self.state.shape()
        size = self.shape.size()
        self.leaves = [
            t.detach().requires_grad_() for t in self.shape.leaves(self.state.rounded[:size])
        ]
        self.sums = self.shape.leaves(self.state.gradients[self.rank, :size])
        self.owned = OwnedParameters(self.state, self.rank, self.processes)

    def _learn(self, step: int) -> None:
        """Add up the gradients of this process's windows, scaled so that the sum over all processes is the gradient of
        the mean loss."""
        file = self.plan.file(step)
        tokens, counted = map(torch.from_numpy, self.files.rows(file.number, self.plan.rows(step)))
        weights = counted.float().roll(-1, 1)
        weights[:, -1] = 0  # what follows a window is not known
        weights *= self.state.loss_scale / weights.sum()
        mine = rows_for(self.rank, self.processes, len(tokens))
        self.state.gradients[self.rank].zero_()
        self.state.losses[self.rank] = 0
        loss = self._backward(
            self.likely, *(x[mine] for x in (tokens, tokens.roll(-1, 1), weights))
        )
        self.state.losses[self.rank] = loss / self.state.loss_scale

    def _unlearn(self, step: int) -> None:
        """The same for this process's rows against repetition; every process's rows count equally."""
        rows, every = self.plan.unlikely_rows, self.plan.unlikely_every
        if self.pool is None or step % every == 0:
            self.pool = self._fresh_pool(step)
        first = step % every * rows % len(self.pool.tokens)
        some = self.pool.part(slice(first, first + rows))
        scale = self.plan.unlikely_weight * self.state.loss_scale / self.processes
        some.weights *= scale / some.weights.sum().clamp(min=1)
        some.unlikely *= scale / (some.unlikely > 0).sum().clamp(min=1)
        self._backward(self.unlikely, *vars(some).values())

    def _fresh_pool(self, step: int) -> Rows:
        model = as_model(self.state.config, self.depth, self.state.weights).eval()
        stories = read_stories(self.windows)
        eos = model.config.eos_token_id
        return make_rows(model, stories, POOL, eos, f"{step}/{self.rank}")

    def _backward(self, gradient_of, tokens: Tensor, *rest: Tensor) -> float:
        """Add the gradients of these rows, a few rows at a time; returns the loss. rest: the arguments of
        `gradient_of`, by row."""
        length = tokens.shape[1]
        cos, sin = rotation(self.shape, length, self.state.dtype)
        rows, loss_of_all = max(1, self.plan.micro_tokens // length), 0.0
        for some, *others in zip(*(x.split(rows) for x in (tokens, *rest)), strict=True):
            hidden = hidden_states(self.leaves, some, cos, sin, self.shape, self.layer)
            flat = (x.flatten() for x in others)
            loss = ChunkedLoss.apply(gradient_of, hidden.flatten(0, 1), self.leaves[0], *flat)
            loss.backward()
            for total, leaf in zip(self.sums, self.leaves, strict=True):
                total += leaf.grad
                leaf.grad = None
            loss_of_all += loss.item()
        return loss_of_all

    def step(self) -> None:
        step = int(self.state.step)
        if self.depth < self.plan.depth(step):
            self.barrier.wait(PATIENCE)
            if self.rank == 0:
                self.state.grow(self.plan.depth(step))
            self.barrier.wait(PATIENCE)
            self._bind()
        self._learn(step)
        if self.plan.unlearns(step):
            self._unlearn(step)
        self.barrier.wait(PATIENCE)
        self.owned.gather(self.processes)
        self.barrier.wait(PATIENCE)
        self._look_at_norm(step)
        rate = self.plan.rate(step)
        self.owned.update(self.plan.muon_rate * rate, self.plan.adam_rate * rate, step + 1)
        self.owned.round()
        self.barrier.wait(PATIENCE)
        if self.rank == 0:
            self.state.step += 1
            taken, left = divmod(int(self.state.step), self.plan.averaged_steps)
            if not left:  # the first states count equally, so the random start is soon forgotten
                kept = min(self.plan.averaging, 1 - 1 / taken)
                self.state.mean.lerp_(self.state.weights, 1 - kept)

    def _look_at_norm(self, step: int) -> None:
        """A gradient that overflows now and then does no harm: that step changes nothing."""
        self.lost = 0 if self.state.norms.sum().isfinite() else self.lost + 1
        if self.lost == LOST_STEPS:
            raise FloatingPointError(
                f"{LOST_STEPS} gradients in a row, up to step {step}, are not finite"
            )

    def run(self, until: int, say=print) -> None:
        """Train up to this step, or until told to stop; the last state is saved."""
        curve = Curve(self.checkpoint.with_suffix(".curve.json"), int(self.state.step))
        saved = time.monotonic()
        while True:
            if self.rank == 0:
                self.state.ended.fill_(int(self.state.step) >= until or bool(self.state.stop))
            self.barrier.wait(PATIENCE)
            if self.state.ended:
                break
            self.step()
            if self.rank == 0:
                curve.add(int(self.state.step), self.state.losses.sum().item(), self.plan, say)
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save(curve)
                    saved = time.monotonic()
        if self.rank == 0:
            self._save(curve)

    def _save(self, curve: Curve) -> None:
        save_checkpoint(self.checkpoint, self.state.state_dict())
        curve.save()


def _process(rank: int, *arguments, until: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent says when to stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    Worker(rank, *arguments).run(until, lambda text: print(text, flush=True))


def resumed_state(
    config, plan: TrainingPlan, checkpoint: Path, processes: int, dtype, seed: int
) -> SharedState:
    state = SharedState(config, processes, dtype)
    saved = load_checkpoint(checkpoint)
    if saved:
        state.load_state_dict(saved)
    else:
        state.begin(plan.depth(0), seed)
    return state


def train(
    config,
    plan: TrainingPlan,
    windows: Path,
    checkpoint: Path,
    processes: int = 2,
    until: int | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    compiled: bool = True,
    say=print,
) -> SharedState:
    """Train from the checkpoint, if there is one, up to step `until`, on the window files of a folder. On SIGTERM the
    current step is finished and saved, and the function returns."""
    until = plan.steps if until is None else until
    state = resumed_state(config, plan, checkpoint, processes, dtype, seed)
    if processes == 1:
        barrier = threading.Barrier(1)
        Worker(0, 1, state, barrier, plan, windows, checkpoint, compiled).run(until, say)
        return state
    signal.signal(signal.SIGTERM, lambda *_: state.stop.fill_(True))
    signal.signal(signal.SIGINT, lambda *_: state.stop.fill_(True))
    context = mp.get_context("spawn")
    shared = (processes, state, context.Barrier(processes), plan, windows, checkpoint, compiled)
    children = [
        context.Process(target=_process, args=(rank, *shared), kwargs={"until": until}, daemon=True)
        for rank in range(processes)
    ]
    for child in children:
        child.start()
    while any(child.is_alive() for child in children):
        if any(child.exitcode for child in children):
            for child in children:
                child.terminate()
            raise RuntimeError("a process of the training failed; it said why")
        time.sleep(1.0)
    return state
