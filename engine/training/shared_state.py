"""The whole state of a training at one step, in memory that its processes share."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.training.functional_llama import Shape

LOSS_SCALE = (
    4096.0  # brings the gradients of a mean over thousands of tokens into the range of fp16
)
KEPT = ("weights", "moment", "second", "mean")


class SharedState:
    """Vectors as long as the deepest model: weights; the moments of Muon and Adam; the running mean of the weights; the
    weights rounded to the precision of the products; one gradient for each process. A shallower model is the beginning
    of each vector, because the layers come last."""

    def __init__(self, config: LlamaConfig, processes: int, dtype: torch.dtype):
        self.config, self.dtype = config, dtype
        self.loss_scale = LOSS_SCALE if dtype == torch.float16 else 1.0
        size = Shape.of(config).size()
        for name in KEPT:
            setattr(self, name, torch.zeros(size).share_memory_())
        self.rounded = torch.zeros(size, dtype=dtype).share_memory_()
        self.gradients = torch.zeros(processes, size).share_memory_()
        self.norms = torch.zeros(processes).share_memory_()
        self.losses = torch.zeros(processes).share_memory_()
        self.step = torch.zeros((), dtype=torch.int64).share_memory_()
        self.depth = torch.zeros((), dtype=torch.int64).share_memory_()
        self.stop = torch.zeros((), dtype=torch.bool).share_memory_()  # requested
        self.ended = torch.zeros((), dtype=torch.bool).share_memory_()  # decided

    def shape(self, layers: int | None = None) -> Shape:
        layers = int(self.depth) if layers is None else layers
        config = LlamaConfig.from_dict({**self.config.to_dict(), "num_hidden_layers": layers})
        return Shape.of(config)

    def begin(self, layers: int, seed: int) -> None:
        """Fresh weights for a model of ``layers`` layers."""
        torch.manual_seed(seed)
        self.depth.fill_(layers)
        views = self.shape().views(self.weights[: self.shape().size()])
        model = LlamaForCausalLM(
            LlamaConfig.from_dict({**self.config.to_dict(), "num_hidden_layers": layers})
        )
        for name, tensor in model.state_dict().items():
            if name in views:
                views[name].copy_(tensor)
        self.mean.copy_(self.weights)
        self.round()

    def round(self) -> None:
        self.rounded.copy_(self.weights)

    def grow(self, layers: int) -> None:
        """Repeat the stack of layers until there are `layers`; each copy takes over the moments of its original
        (G_stack of Du et al., "Stacking Your Transformers", 2024)."""
        old = int(self.depth)
        before = self.shape(0).size()
        each = self.shape(1).size() - before
        for name in KEPT:
            vector = getattr(self, name)
            for i in range(old, layers):
                source = before + (i % old) * each
                vector[before + i * each : before + (i + 1) * each] = vector[source : source + each]
        self.depth.fill_(layers)
        self.round()

    def state_dict(self) -> dict:
        return {
            "step": int(self.step),
            "depth": int(self.depth),
            **{name: getattr(self, name).clone() for name in KEPT},
        }

    def load_state_dict(self, saved: dict) -> None:
        self.step.fill_(saved["step"])
        self.depth.fill_(saved["depth"])
        for name in KEPT:
            getattr(self, name).copy_(saved[name])
        self.round()


def as_model(config: LlamaConfig, depth: int, flat: Tensor) -> LlamaForCausalLM:
    """A vector as a model of transformers."""
    config = LlamaConfig.from_dict({**config.to_dict(), "num_hidden_layers": depth})
    model = LlamaForCausalLM(config)
    shape = Shape.of(config)
    views = shape.views(flat[: shape.size()])
    model.load_state_dict({**views, "lm_head.weight": views["model.embed_tokens.weight"]})
    return model
