"""Muon for the matrices and Adam for the rest on shared vectors: every process updates the parameters it owns."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

from engine.training.functional_llama import Shape
from engine.training.optim import orthogonalize
from engine.training.shared_state import SharedState

CLIP = 1.0  # largest norm of the gradient
DECAY, MOMENTUM, BETAS = 0.03, 0.95, (0.9, 0.95)


class OwnedParameters:
    """The parameters of one process: every `processes`-th matrix of each shape, and for the last process also all
    other parameters. Orthogonalising costs the most, so the matrices are shared evenly."""

    def __init__(self, state: SharedState, rank: int, processes: int):
        self.state, self.rank, self.last = state, rank, rank == processes - 1
        shape: Shape = state.shape()
        size = shape.size()
        self.views = {
            name: shape.views(getattr(state, name)[:size])
            for name in ("weights", "moment", "second")
        }
        self.gradient = torch.zeros(size)
        self.gradients = shape.views(self.gradient)
        by_shape: dict[tuple, list[str]] = defaultdict(list)
        for name, of in shape.parameters().items():
            if len(of) == 2 and "embed" not in name:
                by_shape[of].append(name)
        self.matrices = {of: names[rank::processes] for of, names in by_shape.items()}
        matrices = {n for names in by_shape.values() for n in names}
        self.others = [n for n in shape.parameters() if n not in matrices] if self.last else []
        self.size = size

    def gather(self, processes: int) -> None:
        """Sum the gradients of all processes and record the squared norm of the owned part of the sum."""
        torch.add(self.state.gradients[0, : self.size], 0, out=self.gradient)
        for other in range(1, processes):
            self.gradient += self.state.gradients[other, : self.size]
        self.gradient /= self.state.loss_scale
        owned = [n for names in self.matrices.values() for n in names] + self.others
        squares = sum(self.gradients[n].square().sum() for n in owned)
        self.state.norms[self.rank] = squares

    def update(self, muon_rate: float, adam_rate: float, step: int) -> None:
        """Call this after every process has gathered. `step` counts from one. A gradient that overflowed its number
        format changes nothing."""
        length = self.state.norms.sum().sqrt()
        if not length.isfinite():
            return
        self.gradient *= (CLIP / (length + 1e-6)).clamp(max=1.0)
        for of, names in self.matrices.items():
            if names:
                self._muon(of, names, muon_rate)
        for name in self.others:
            self._adam(name, adam_rate, step)

    def _muon(self, of: tuple[int, int], names: list[str], rate: float) -> None:
        gradients = torch.stack([self.gradients[n] for n in names])
        moments = torch.stack([self.views["moment"][n] for n in names])
        moments.lerp_(gradients, 1 - MOMENTUM)
        updates = orthogonalize(gradients.lerp_(moments, MOMENTUM).to(self.state.dtype)).float()
        rate *= max(1.0, of[0] / of[1]) ** 0.5
        for name, moment, update in zip(names, moments, updates, strict=True):
            self.views["moment"][name].copy_(moment)
            self.views["weights"][name].mul_(1 - rate * DECAY).add_(update, alpha=-rate)

    def _adam(self, name: str, rate: float, step: int) -> None:
        first, second = BETAS
        gradient: Tensor = self.gradients[name]
        moment, square = self.views["moment"][name], self.views["second"][name]
        moment.lerp_(gradient, 1 - first)
        square.lerp_(gradient.square(), 1 - second)
        root = (square / (1 - second**step)).sqrt_().add_(1e-8)
        self.views["weights"][name].addcdiv_(moment, root, value=-rate / (1 - first**step))

    def round(self) -> None:
        """Write the owned weights into the rounded vector."""
        rounded = self.state.shape().views(self.state.rounded[: self.size])
        for name in [*(n for names in self.matrices.values() for n in names), *self.others]:
            rounded[name].copy_(self.views["weights"][name])
