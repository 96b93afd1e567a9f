"""An optimizer that uses Muon for matrices and AdamW for all other parameters. Its state is keyed by parameter name.

Muon (Jordan et al., 2024) replaces the momentum of a matrix by the nearest orthogonal matrix, which a Newton-Schulz
iteration finds. torch.optim.Muon runs this iteration for one matrix at a time, in bf16, which is slow on a CPU without
AMX. Here the iteration runs for all matrices of the same shape together, in the type of the parameters.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: Tensor, steps: int = 4) -> Tensor:
    """For each of n matrices, an approximation of the nearest orthogonal matrix, [n, r, c] -> [n, r, c]. Its singular
    values are near 1."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.float().norm(dim=(1, 2), keepdim=True).to(x.dtype) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + torch.baddbmm(gram, gram, gram, beta=b, alpha=c) @ x
    return x.mT if tall else x


class MuonAdam:
    """Muon for matrices, AdamW for all other parameters. Call `step(scale)` after backward; `scale` multiplies both
    learning rates.

    averaged_steps: the number of steps between two updates of a running mean of the weights; 0: no mean is computed.
    averaging: the share of its old value that the mean keeps in an update. While the learning rates are still high, a
    model with the mean is better than one with the last weights.
    """

    def __init__(
        self,
        model: nn.Module,
        muon_rate: float,
        adam_rate: float,
        decay: float = 0.03,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.95),
        averaged_steps: int = 0,
        averaging: float = 0.98,
    ):
        self.muon_rate, self.adam_rate, self.decay = muon_rate, adam_rate, decay
        self.momentum, self.betas = momentum, betas
        self.averaged_steps, self.averaging = averaged_steps, averaging
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.shapes: dict[torch.Size, list[str]] = defaultdict(list)
        for name, parameter in self.parameters.items():
            if parameter.ndim == 2 and "embed" not in name and "lm_head" not in name:
                self.shapes[parameter.shape].append(name)
        matrices = {n for names in self.shapes.values() for n in names}
        self.state = {
            n: {"m": torch.zeros_like(p)} | ({} if n in matrices else {"v": torch.zeros_like(p)})
            for n, p in self.parameters.items()
        }
        if averaged_steps:
            for name, parameter in self.parameters.items():
                self.state[name]["mean"] = parameter.detach().clone()
        self.steps = 0

    @torch.no_grad()
    def step(self, scale: float = 1.0) -> None:
        self.steps += 1
        for shape, names in self.shapes.items():
            self._muon(shape, names, self.muon_rate * scale)
        for name, state in self.state.items():
            if "v" in state:
                self._adam(self.parameters[name], state, self.adam_rate * scale)
        if self.averaged_steps and self.steps % self.averaged_steps == 0:
            # the first updates have equal weights, so the random start is soon forgotten
            kept = min(self.averaging, 1 - self.averaged_steps / self.steps)
            for name, state in self.state.items():
                state["mean"].lerp_(self.parameters[name], 1 - kept)

    def zero_grad(self) -> None:
        for parameter in self.parameters.values():
            parameter.grad = None

    def _muon(self, shape: torch.Size, names: list[str], rate: float) -> None:
        gradients = torch.stack([self.parameters[n].grad for n in names])
        moments = torch.stack([self.state[n]["m"] for n in names]).lerp_(
            gradients, 1 - self.momentum
        )
        updates = orthogonalize(gradients.lerp_(moments, self.momentum))
        rate *= max(1.0, shape[0] / shape[1]) ** 0.5
        for name, moment, update in zip(names, moments, updates, strict=True):
            self.state[name]["m"].copy_(moment)
            self.parameters[name].mul_(1 - rate * self.decay).add_(update, alpha=-rate)

    def _adam(self, parameter: Tensor, state: dict, rate: float) -> None:
        first, second = self.betas
        state["m"].lerp_(parameter.grad, 1 - first)
        state["v"].lerp_(parameter.grad.square(), 1 - second)
        root = (state["v"] / (1 - second**self.steps)).sqrt_().add_(1e-8)
        parameter.addcdiv_(state["m"], root, value=-rate / (1 - first**self.steps))

    def state_dict(self) -> dict:
        return {"steps": self.steps, "state": self.state}

    def load_state_dict(self, saved: dict) -> None:
        self.steps = saved["steps"]
        for name, state in saved["state"].items():
            for key, tensor in state.items():
                self.state[name][key].copy_(tensor)
